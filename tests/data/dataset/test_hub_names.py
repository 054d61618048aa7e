"""Names on the Hub and hf URLs, served by a small Hub of this test's own, or by none."""

import io
import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyarrow import parquet

from gpt.config import ROOT

COMMIT = "0123456789" * 4


def as_parquet(values: list[str]) -> bytes:
    parquet.write_table(pa.table({"text": values}), file := io.BytesIO(), row_group_size=2)
    return file.getvalue()


REPOSITORIES = {
    "u/tales": {
        "data/train-0.parquet": as_parquet(["one", "two", "three"]),
        "data/train-1.parquet": as_parquet(["four"]),
        "data/validation-0.parquet": as_parquet(["held out"]),
        "lines.jsonl": b'{"text": "007"}\n{"text": "NA"}\n',
        "plain.txt": b"a\r\nb",
    },
    "u/scripted": {"scripted.py": b"raise SystemExit('run')"},
}


class Hub(BaseHTTPRequestHandler):
    """As much of the Hub's API as reading a data set asks for."""

    def do_GET(self):
        path = unquote(self.path.partition("?")[0])
        kind, _, name, rest = re.fullmatch(r"/((api/)?datasets)/(\w+/\w+)/?(.*)", path).groups()
        files = REPOSITORIES.get(name)
        if files is None:
            self.answer(403 if name == "u/gated" else 401, error="GatedRepo" if name == "u/gated" else "RepoNotFound")
        elif kind == "datasets":
            self.resolve(files, rest.split("/", 2)[2])
        elif rest.startswith("tree/"):
            self.tree(files, rest.split("/", 2)[2] if rest.count("/") > 1 else "")
        else:
            self.answer(
                200, json.dumps({"id": name, "sha": COMMIT, "siblings": [{"rfilename": f} for f in files]}).encode()
            )

    def do_HEAD(self):
        self.do_GET()

    def resolve(self, files, path):
        if path not in files:
            return self.answer(404, error="EntryNotFound")
        content, size = files[path], len(files[path])
        if asked := self.headers.get("Range"):
            begin, end = asked.removeprefix("bytes=").split("-")
            content = content[int(begin) : int(end or size) + 1]
            return self.answer(206, content, Content_Range=f"bytes {begin}-{int(begin) + len(content) - 1}/{size}")
        return self.answer(200, content)

    def tree(self, files, folder):
        here = [path for path in files if path.rpartition("/")[0] == folder]
        below = {path.partition("/")[0] for path in files if "/" in path} if not folder else ()
        entries = [{"type": "file", "path": path, "size": len(files[path]), "oid": COMMIT} for path in here]
        entries += [{"type": "directory", "path": path, "size": 0, "oid": COMMIT} for path in below]
        self.answer(200, json.dumps(entries).encode()) if entries else self.answer(404, error="EntryNotFound")

    def answer(self, code, content=b"", error="", **headers):
        self.send_response(code)
        given = {"Content_Length": len(content), "ETag": f'"{len(content)}"', "X_Repo_Commit": COMMIT, **headers}
        for key, value in {**given, **({"X_Error_Code": error} if error else {})}.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


READ = """
import json, pathlib, sys
from gpt.config import UserError
from gpt.data.dataset import hub
hub.DOWNLOADS = pathlib.Path(sys.argv[1])
for settings in json.loads(sys.argv[2]):
    dataset = hub.HubConfig(**settings).build()
    facts = [dataset.fingerprint(), dataset.describe()]
    try:
        read = [["".join(document) for document in dataset.documents(split)] for split in ("train", "validation")]
    except UserError as error:
        read = str(error)
    print(json.dumps(read))
"""


def read(endpoint: str, folder, *settings):
    """What a process of its own reads, whose Hub is at `endpoint`: documents of both splits, or an error."""
    environment = {"HF_ENDPOINT": endpoint, "HF_HOME": str(folder), "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", READ, str(folder / "downloads"), json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def endpoint():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_names_and_urls(endpoint, tmp_path):
    files = "hf://datasets/u/tales"
    found = read(
        endpoint, tmp_path,
        {"path": "u/tales", "validation_split": "validation"},
        {"path": "u/tales", "validation_split": "validation", "streaming": False},
        {"path": "u/tales", "validation_documents": 1, "revision": COMMIT},
        {"path": f"{files}/data/train-*.parquet", "validation_documents": 2},
        {"path": f"{files}@{COMMIT}/data/train-0.parquet", "validation_documents": 0},
        {"path": f"{files}/lines.jsonl", "validation_documents": 0},
        {"path": f"{files}/plain.txt", "validation_documents": 0},
    )  # fmt: skip
    assert found == [
        [["one", "two", "three", "four"], ["held out"]],
        [["one", "two", "three", "four"], ["held out"]],
        [["two", "three", "four"], ["one"]],
        [["three", "four"], ["one", "two"]],
        [["one", "two", "three"], []],
        [["007", "NA"], []],
        [["a\r\nb"], []],
    ]


def test_what_the_hub_does_not_give(endpoint, tmp_path):
    names = ["u/nobody", "u/gated", "u/scripted", "hf://datasets/u/tales/no.parquet", "hf://datasets/u/tales/no*.csv",
             "hf://datasets/u/tales/no.txt"]  # fmt: skip
    missing, gated, script, *files = read(endpoint, tmp_path, *({"path": name} for name in names))
    log_in = "Check dataset.path; if it is private or gated, log in with: hf auth login"
    assert missing == f"u/nobody: Dataset 'u/nobody' doesn't exist on the Hub or cannot be accessed. {log_in}"
    assert gated.startswith("u/gated: Dataset 'u/gated' is a gated dataset on the Hub. ")
    assert script == (
        "u/scripted: it needs a script to be read, and none is run; try dataset.revision=refs/convert/parquet"
    )
    assert files == [
        "hf://datasets/u/tales/no.parquet: there is no such file",
        "hf://datasets/u/tales/no*.csv: no file matches; see its files at huggingface.co",
        "hf://datasets/u/tales/no.txt: there is no such file",
    ]


def test_without_network_one_line(tmp_path):
    """Port 9 of this machine answers nobody."""
    files = ("a.parquet", "*.parquet", "a.jsonl", "a.csv", "a.txt")
    paths = ["u/n", *(f"hf://datasets/u/n/{name}" for name in files)]
    for path, said in zip(
        paths, read("http://127.0.0.1:9", tmp_path, *({"path": path} for path in paths)), strict=True
    ):
        assert said.startswith(f"{path}: cannot be reached (")
        assert said.endswith("; check the network, or use text that is on this machine")


COUNTED = """
import sys
asked = []
sys.addaudithook(lambda event, _: asked.append(event) if event == "socket.connect" else None)
from gpt.config import UserError
from gpt.data.dataset.hub import HubConfig
try:
    next(HubConfig(path="u/n").build().documents("train"))
except UserError:
    print(len(asked))
"""


def test_a_name_is_given_up_at_the_first_failure(tmp_path):
    """The library by itself would ask six times, in half a minute."""
    environment = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", COUNTED]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
    assert int(done.stdout) <= 2
