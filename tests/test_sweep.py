"""Sweeps of train.py and sample.py as a user runs them: real processes, from another directory."""

import csv
import re
import signal
import subprocess
import sys
import time

import pytest

from gpt.config import ROOT

TINY = [
    "tokenizer=byte", "model.n_layer=1", "model.n_head=2", "model.d_model=16", "model.context=32",
    "dataset.years=[1790,1800]", "steps=20", "batch_size=8", "eval_every=20", "compile=off", "precision=fp32",
    "device=cpu", "logger=[]",
]  # fmt: skip


def script(name, *arguments, cwd):
    command = [sys.executable, str(ROOT / name), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=300)


def table(folder):
    with (folder / "sweep.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Six jobs, of which the third fails on purpose: only when the text is read it turns out too short."""
    folder = tmp_path_factory.mktemp("swept")
    process = script("train.py", "-m", *TINY, "model.context=8,16,100000,24,32,40", "hydra.sweep.dir=mine", cwd=folder)
    return folder, process


def test_the_table_is_right_and_the_code_tells_of_the_failure(swept):
    folder, process = swept
    assert process.returncode == 1
    rows = table(folder / "mine")
    assert [row["model.context"] for row in rows] == ["8", "16", "100000", "24", "32", "40"]
    assert [row["status"] for row in rows if row["job"] != "3"] == ["done"] * 5
    assert rows[2]["status"].startswith("failed: model.context=100000: the train split has ")
    assert rows[2]["validation loss"] == rows[2]["folder"] == ""
    told = re.findall(r"^validation loss (\d\.\d{4})$", process.stdout, re.M)
    assert [row["validation loss"] for row in rows if row["job"] != "3"] == told
    for row in rows:
        cells = [row["job"], row["model.context"], row["validation loss"], row["folder"]]
        line = " +".join(re.escape(cell) for cell in cells if cell)
        assert re.search(rf"^{line} +\d:\d\d:\d\d +{re.escape(row['status'])}$", process.stdout, re.M), row
    assert process.stderr == f"error: job 3: {rows[2]['status'].removeprefix('failed: ')}\n"


def test_the_other_runs_are_whole(swept):
    folder, _ = swept
    assert files(folder) == {"mine"}
    assert files(folder / "mine") == {"1", "2", "4", "5", "6", "sweep.csv"}
    for number in "12456":
        assert files(folder / "mine" / number) == {
            "config.yaml", "metrics.csv", "samples.jsonl", "summary.json", "report.html", "checkpoints",
        }  # fmt: skip

    sample = ["run=mine/6", "max_new_tokens=5", "temperature=0"]
    assert script("sample.py", *sample, cwd=folder).returncode == 0


def test_a_job_gives_what_the_run_alone_would(swept):
    folder, _ = swept
    alone = script("train.py", *TINY, "model.context=16", "hydra.run.dir=alone/x", cwd=folder.parent)
    assert alone.stdout.splitlines()[-1] == f"validation loss {table(folder / 'mine')[1]['validation loss']}"


def test_sampling_sweeps_too(swept):
    folder, _ = swept
    before = sorted(folder.rglob("*"))
    argv = ["-m", "run=mine/1", "prompt=A, b", "temperature=0,1", "max_new_tokens=5"]
    process = script("sample.py", *argv, cwd=folder)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("A, b") == 2
    assert "=== job 2 of 2: temperature=1, about 0:00:0" in process.stdout
    assert sorted(folder.rglob("*")) == before, "nothing is left"


def test_where_every_job_is_refused_nothing_is_left(tmp_path):
    process = script("train.py", "-m", *TINY, "model.d_model=33,35", "hydra.sweep.dir=mine", cwd=tmp_path)
    assert process.returncode == 2
    assert re.fullmatch(r"error: model.d_model: 33 .*; none of the other jobs can run either\n", process.stderr)
    assert process.stdout == ""
    assert files(tmp_path) == set()


def test_an_interrupted_sweep_tells_and_its_run_goes_on(tmp_path):
    # The second one would take an hour, the first is done at once.
    argv = ["-m", *TINY, "steps=5,100000,6", "hydra.sweep.dir=mine"]
    command = [sys.executable, str(ROOT / "train.py"), *argv]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("mine/2/checkpoints/step_*")):
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 143
    assert [row["status"] for row in table(tmp_path / "mine")] == ["done", "interrupted", "not run"]
    assert re.search(r"^3 +6 +not run$", out, re.M)
    assert re.fullmatch(r"interrupted after step (\d+) and saved; to go on: python .*train.py resume=mine/2\n", err)
    step = int(re.search(r"step (\d+)", err)[1])
    resumed = script("train.py", "resume=mine/2", f"steps={step + 5}", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / f"mine/2/checkpoints/step_{step + 5:08d}").is_dir()
