import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gpt.config import UserError
from gpt.data.source import fetch as module
from gpt.data.source.fetch import fetch, local_name, noting

TEXT = "Première ligne\r\nzweite\n".encode() * 1000


class Server(ThreadingHTTPServer):
    """Gives TEXT at every path but /missing; /busy and /broken fail at first, /never always breaks off; /empty is
    empty, /silent says nothing for a while, and /odd tells a size that is no number."""

    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        self.server.asked.append(self.path)
        first = self.server.asked.count(self.path) == 1
        if self.path == "/silent":
            time.sleep(0.5)
        code = 404 if self.path == "/missing" else 503 if self.path == "/busy" and first else 200
        self.send_response(code)
        size = "abc" if self.path == "/odd" else 0 if self.path == "/empty" else len(TEXT)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        if self.path == "/empty":
            return
        breaks = self.path == "/never" or (self.path == "/broken" and first)
        self.wfile.write(TEXT[:100] if breaks else TEXT)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "WAITS", (0.01, 0.01))
    monkeypatch.setattr(module, "TIMEOUT", (1.0, 0.2))
    with Server(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_file_is_fetched_once_and_found_without_network(server, tmp_path):
    url = f"{server.url}/some/input.txt.gz?version=2"
    path = fetch(url, tmp_path / "new" / "folder")
    assert path.read_bytes() == TEXT
    assert path.parent == tmp_path / "new" / "folder"
    assert path.name.startswith("input-")
    assert path.name.endswith(".txt.gz")
    server.shutdown()
    assert fetch(url, tmp_path / "new" / "folder") == path
    assert server.asked == ["/some/input.txt.gz?version=2"]


def test_urls_that_end_alike_are_told_apart():
    assert local_name("https://a/input.txt") != local_name("https://b/input.txt")
    assert local_name("https://a/input.txt?x=1") != local_name("https://a/input.txt?x=2")


@pytest.mark.parametrize("path", ["/busy", "/broken"])
def test_what_fails_once_is_tried_again(server, tmp_path, path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 64)  # the first block of what breaks off after 100 bytes is written
    assert fetch(server.url + path, tmp_path).read_bytes() == TEXT
    assert server.asked == [path, path]


@pytest.mark.parametrize("path, tries, said", [
    ("/missing", 1, "there is no such file"),
    ("/empty", 1, "the answer is empty; check dataset.path"),
    ("/silent", 1, "cannot be reached (timed out); "),
    ("/never", 3, "cannot be reached (IncompleteRead(100 bytes read, 23900 more expected)); "),
])  # fmt: skip
def test_what_fails_leaves_nothing_behind(server, tmp_path, path, tries, said):
    with pytest.raises(UserError) as error:
        fetch(server.url + path, tmp_path)
    assert str(error.value).startswith(f"{server.url}{path}: {said}")
    assert "\n" not in str(error.value)
    assert server.asked == [path] * tries
    assert list(tmp_path.iterdir()) == []


def test_what_gets_its_name_is_on_disk(server, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(module, "sync", lambda path: synced.append((path.name, path.read_bytes() == TEXT)))
    path = fetch(f"{server.url}/a.txt", tmp_path)
    assert synced == [(path.name, True)]


def test_a_server_that_is_not_there(server, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(UserError, match=r"^http://127.0.0.1:\d+/a.txt: cannot be reached \(.*\); check the network"):
        fetch(f"{server.url}/a.txt", tmp_path)


def test_a_folder_that_is_none(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file: what is fetched cannot be kept there: File exists"):
        fetch(f"{server.url}/a.txt", tmp_path / "file")


def test_a_size_that_is_no_number(server, tmp_path):
    assert fetch(f"{server.url}/odd", tmp_path).read_bytes() == TEXT


def test_an_error_in_what_was_fetched_says_how_to_fetch_it_again(tmp_path):
    def broken():
        yield "a"
        raise UserError("it is torn")

    texts = noting(broken(), "http://h/a", tmp_path)
    assert next(texts) == "a"
    with pytest.raises(UserError) as error:
        next(texts)
    assert str(error.value) == (
        f"it is torn ({tmp_path} was fetched from http://h/a; delete it to have it fetched again)"
    )
