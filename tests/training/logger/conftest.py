import json
import os
from types import SimpleNamespace

import pytest
import wandb
from wandb.proto.wandb_internal_pb2 import Record

from gpt.training.logger import RunInfo
from gpt.training.logger.wandb import WandbConfig

BLOCK = 1 << 15
SETTINGS = {"name": "gpt", "steps": 30, "model": {"n_layer": 2, "d_model": 32}, "tokenizer": {"name": "byte"}}


@pytest.fixture
def info():
    """A function that tells of a run in a folder, a new one, or one that goes on after a step."""

    def make(folder, resumed_at=0):
        folder.mkdir(exist_ok=True)
        return RunInfo(SimpleNamespace(folder=folder, settings=SETTINGS), [], resumed_at)

    return make


@pytest.fixture
def metrics():
    """A function that gives what is logged of training after a step; its loss is 1 / step."""

    def make(step):
        return {
            "step": step, "tokens": 512 * step, "elapsed": 0.5 * step, "lr": 0.01, "loss": 1 / step,
            "grad_norm": 1.5, "tokens_per_second": 1024.0, "skipped": 0,
        }  # fmt: skip

    return make


@pytest.fixture
def validation():
    """A function that gives what is logged of an evaluation after a step."""

    def make(step, loss):
        return {"step": step, "tokens": 512 * step, "elapsed": 0.5 * step,
                "validation_loss": loss, "validation_bits_per_byte": loss / 2}  # fmt: skip

    return make


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Neither settings nor a key of whoever runs the tests; an empty working directory and home."""
    for name in list(os.environ):
        if name.startswith("WANDB_") or name in ("NETRC", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
            monkeypatch.delenv(name)
    for name in ("cwd", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "cwd")
    wandb.teardown()
    yield
    wandb.teardown()


@pytest.fixture
def train(info, metrics, validation):
    """A function that logs two rows and an evaluation of a training; offline, unless told."""

    def run(folder, resumed_at=0, **settings):
        logger = WandbConfig(**{"mode": "offline", **settings}).build()
        logger.start(info(folder, resumed_at))
        for step in (resumed_at + 10, resumed_at + 20):
            logger.log(metrics(step), step / 100)
        logger.log(validation(step, 2.5), step / 100)
        logger.sample(step, f"after {step}: the army 日本")
        logger.finish()
        return logger

    return run


def records(file):
    """The records of a .wandb file: LevelDB's log format, blocks of 32 KiB after a header of 7 bytes.

    A record is cut into pieces, each with a checksum (4 bytes), its length (2) and which piece it is (1): the whole,
    the first, one in the middle, the last.
    """
    content, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(content):
        length, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        if BLOCK - at % BLOCK < 7 or kind == 0:
            at += BLOCK - at % BLOCK
            continue
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield Record.FromString(whole)
            whole = b""


def of_kind(file, kind):
    return [getattr(record, kind) for record in records(file) if record.WhichOneof("record_type") == kind]


def history(file):
    """The rows logged, without what wandb adds; a value of several parts as a mapping."""
    rows = []
    for logged in of_kind(file, "history"):
        row = {}
        for item in logged.item:
            name, *parts = item.nested_key or [item.key]
            value = json.loads(item.value_json)
            row.setdefault(name, {}).update({parts[0]: value}) if parts else row.update({name: value})
        rows.append({name: value for name, value in row.items() if not name.startswith("_")})
    return rows


def tables(file):
    """The tables logged, in order."""
    return [
        json.loads((file.parent / "files" / row["samples"]["path"]).read_text(encoding="utf-8"))
        for row in history(file)
        if "samples" in row
    ]


def runs(folder):
    """The files of a folder's offline runs, once wandb's own process has written all of them."""
    wandb.teardown()
    return sorted(folder.glob("wandb/offline-run-*/*.wandb"))


@pytest.fixture
def read():
    """The functions that read what wandb has written."""
    return SimpleNamespace(runs=runs, of_kind=of_kind, history=history, tables=tables)


SCRIPT = """
import sys
from pathlib import Path
from types import SimpleNamespace
from pathlib import Path
from gpt.training.logger import RunInfo
from gpt.training.logger.wandb import WandbConfig
assert "wandb" not in sys.modules, "it takes half a second to import"
logger = WandbConfig(project="日本").build()
logger.start(RunInfo(SimpleNamespace(folder=Path(sys.argv[1]), settings={"path": "日本"}), []))
print("said while it runs")
logger.log({"step": 10, "loss": 2.5}, 1.0)
logger.sample(10, "私は")
logger.finish()
"""


@pytest.fixture
def script(tmp_path):
    """A program that logs a short run to the folder it is given."""
    file = tmp_path / "script.py"
    file.write_text(SCRIPT, encoding="utf-8")
    return file
