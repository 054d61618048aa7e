"""wandb with a server: one that answers, refuses, falls silent."""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import wandb

from gpt.config import ROOT
from gpt.training.logger import wandb as ours
from gpt.training.logger.wandb import WandbConfig

pytestmark = pytest.mark.usefixtures("alone")
KEY = "0123456789" * 4


class Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.got, self.dead, self.over, self.refuses = [], threading.Event(), threading.Event(), False

    def handle_error(self, request, client_address):
        """Who asks may go away."""


class Answers(BaseHTTPRequestHandler):
    """Answers so much of the protocol that a run without a table is taken; once dead, it takes and never answers."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        self.do_POST()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, json.loads(body or b"{}") if self.command == "POST" else {}))
        if self.server.dead.is_set():
            self.server.over.wait()
            return
        answer = json.dumps(self.answer(*self.server.got[-1])).encode()
        self.send_response(403 if self.server.refuses else 200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def answer(self, path, request):
        query, variables = request.get("query", ""), request.get("variables", {})
        if "upsertBucket" in query:
            project = {"id": "UA==", "name": "tiny-gpt", "entity": {"id": "RQ==", "name": "me"}}
            named = {"name": variables["name"], "displayName": variables["name"]}
            bucket = {"id": "Qg==", **named, "historyLineCount": 0, "project": project}
            return {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}}
        if "createRunFiles" in query:
            url = f"{os.environ['WANDB_BASE_URL']}/upload"
            files = [{"name": name, "uploadUrl": url} for name in variables["files"]]
            return {"data": {"createRunFiles": {"runID": "Qg==", "uploadHeaders": [], "files": files}}}
        return {"data": {"model": None, "project": None}} if query else {}

    def log_message(self, *args):
        """Quiet."""


@pytest.fixture
def server(monkeypatch):
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    yield server
    wandb.teardown()
    server.over.set()
    server.shutdown()
    server.server_close()


def sent_history(server):
    files = [body.get("files", {}) for path, body in server.got if path.endswith("file_stream")]
    return [json.loads(line) for file in files for line in file.get("wandb-history.jsonl", {}).get("content", [])]


def test_online_with_a_key(tmp_path, server, info, metrics, capfd):
    ids = []
    for resumed_at in (0, 10):
        logger = WandbConfig().build()
        logger.start(info(tmp_path / "run", resumed_at))
        logger.log(metrics(resumed_at + 10), 0.5)
        logger.finish()
        ids.append(logger.id)
    created = [body["variables"] for _, body in server.got if "upsertBucket" in body.get("query", "")]
    assert {variables["name"] for variables in created if variables["name"]} == set(ids)
    assert ids[0] == ids[1]
    config = json.loads(created[0]["config"])
    assert {name: entry["value"] for name, entry in config.items() if name != "_wandb"} == info(tmp_path).run.settings
    assert [(row["step"], row["train/loss"]) for row in sent_history(server)] == [(10, 0.1), (20, 0.05)]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("refuses", [True, False])
def test_a_server_that_takes_no_run_means_offline_and_is_sent_no_report(refuses, tmp_path, server, script, read):
    """Reports of errors are sent as the program ends, and would make that wait where nobody answers."""
    server.refuses = refuses
    if not refuses:
        server.dead.set()
    folder = tmp_path / "run"
    folder.mkdir()
    impatient = "import gpt.training.logger.wandb\ngpt.training.logger.wandb.START = 1\n"
    script.write_text(impatient + script.read_text(encoding="utf-8"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, str(script), str(folder)], env=environment, capture_output=True, timeout=60, check=True
    )
    assert ended.stderr.count(b"writing offline; to upload: wandb sync") == 1
    assert read.history(read.runs(folder)[0])[0] == {"step": 10, "train/loss": 2.5}
    assert {path for path, _ in server.got} == {"/graphql"}


def test_a_server_that_does_not_answer_at_the_end_is_not_waited_for(
    tmp_path, monkeypatch, server, info, metrics, capfd, read
):
    monkeypatch.setattr(ours, "FINISH", 1)
    logger = WandbConfig().build()
    logger.start(info(tmp_path / "run"))
    server.dead.set()
    logger.log(metrics(10), 0.5)
    began = time.monotonic()
    with pytest.warns(UserWarning, match="did not end within 1 s; to upload: wandb sync --include-online ") as told:
        logger.finish()
    wandb.teardown()  # as at the program's end
    assert time.monotonic() - began < 20
    assert len(told) == 1
    (file,) = (tmp_path / "run").glob("wandb/run-*/*.wandb")
    assert [row["step"] for row in read.history(file)] == [10], "it is all on disk"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("silent", [True, False])
def test_a_server_that_is_not_there_at_the_start_means_offline(
    silent, tmp_path, monkeypatch, server, train, capfd, read
):
    monkeypatch.setattr(ours, "START", 1)
    server.dead.set()
    if not silent:
        monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    began = time.monotonic()
    with pytest.warns(UserWarning, match="; writing offline; to upload: wandb sync ") as told:
        train(tmp_path / "run", mode="auto")
    assert time.monotonic() - began < 20
    assert len(told) == 1
    (file,) = read.runs(tmp_path / "run")
    assert [row["step"] for row in read.history(file)] == [10, 20, 20, 20]
    assert capfd.readouterr() == ("", "")
