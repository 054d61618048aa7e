"""Sweeps: each job checked before any runs, its own folder, one table; a failed job does not end the others."""

import csv
import gc
import os
import re
import signal
import sys
import time
import warnings
import weakref
from pathlib import Path

import pytest
import yaml

from gpt.cli.table import Report
from gpt.cli.work import Work
from gpt.config import UserError


def claim(wanted: Path | None, name: str) -> Path:
    folder = wanted or Path("runs") / name
    folder.mkdir(parents=True)
    return folder


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_combination_runs_once_in_a_folder_of_its_own(end, tmp_path):
    seen = []

    def task(settings, run_dir):
        (run_dir / "made").touch()
        seen.append((settings.steps, settings.optimizer.name, settings.prompt, run_dir, sys.argv))
        return {"square": str(settings.steps**2)}

    argv = ["-m", "steps=2,3", "optimizer=sgd,adam", "prompt=a,b ${c}", "hydra.sweep.dir=It's, 私 \\${x} (1)"]
    code, out, err = end(*argv, task=task, claim=claim)
    folder = tmp_path / "It's, 私 \\${x} (1)"
    assert (code, err) == (0, "")
    assert [job[:4] for job in seen] == [
        (2, "sgd", "a,b ${c}", folder / "1"),
        (2, "adam", "a,b ${c}", folder / "2"),
        (3, "sgd", "a,b ${c}", folder / "3"),
        (3, "adam", "a,b ${c}", folder / "4"),
    ]
    assert files(tmp_path) == {f"{folder.name}/{n}/made" for n in "1234"} | {f"{folder.name}/sweep.csv"}
    assert [(row["job"], row["steps"], row["optimizer"], row["square"], row["status"]) for row in rows(folder)] == [
        ("1", "2", "sgd", "4", "done"),
        ("2", "2", "adam", "4", "done"),
        ("3", "3", "sgd", "9", "done"),
        ("4", "3", "adam", "9", "done"),
    ]
    headings = re.findall(r"^=== (.+?)(?:, about \d:\d\d:\d\d left)? ===$", out, re.M)
    assert headings[2] == "job 3 of 4: steps=3 optimizer=sgd"
    assert out.count(" left ===") == 3, "from the second one on"


def test_a_task_sees_the_line_that_its_job_alone_would_take(end):
    seen = []
    end("-m", "steps=2,3", "name=a b", "hydra.sweep.dir=x", task=lambda *_: seen.append(sys.argv[1:]), claim=claim)
    assert seen == [["steps=2", "name=a b"], ["steps=3", "name=a b"]]


def test_a_job_that_fails_does_not_end_the_others(end, tmp_path):
    errors = {1: UserError("budget: too\nlittle"), 3: ZeroDivisionError("by 0"), 4: SystemExit(7)}

    def task(settings, run_dir):
        if settings.steps in errors:
            raise errors[settings.steps]
        (run_dir / "made").touch()
        return {"square": str(settings.steps**2)}

    code, out, err = end("-m", "steps=range(1,6)", task=task, claim=claim)
    again = "; run again with debug=true for the traceback"
    lines = [
        "budget: too little",
        f"unexpected ZeroDivisionError: by 0{again}",
        f"unexpected SystemExit: 7{again}",
    ]
    assert code == 1
    assert err == "".join(f"error: job {n}: {line}\n" for n, line in zip((1, 3, 4), lines, strict=True))
    assert [row["status"] for row in rows(tmp_path / "runs/gpt")] == [
        f"failed: {lines[0]}", "done", f"failed: {lines[1]}", f"failed: {lines[2]}", "done",
    ]  # fmt: skip
    assert files(tmp_path / "runs") == {"gpt/2/made", "gpt/5/made", "gpt/sweep.csv"}
    assert not (tmp_path / "runs/gpt/1").exists(), "it left nothing, so it leaves no folder"
    assert "runs/gpt/sweep.csv" in out


def test_a_job_that_is_refused_is_in_the_table_and_the_others_run(end, tmp_path):
    seen = []
    code, _, err = end("-m", "steps=2,x", "optimizer=adam,adm", task=lambda s, d: seen.append(d.name), claim=claim)
    assert (code, seen) == (1, ["1"])
    told = [
        "optimizer: there is no 'adm'; did you mean adam? there are adam, sgd",
        "steps: expected a valid integer, got 'x'",
        "optimizer: there is no 'adm'; did you mean adam? there are adam, sgd",
    ]
    assert err == "".join(f"error: job {n}: {line}\n" for n, line in enumerate(told, 2))
    assert [row["status"] for row in rows(tmp_path / "runs/gpt")] == ["done", *(f"failed: {line}" for line in told)]
    assert [row["seconds"] for row in rows(tmp_path / "runs/gpt")][1:] == ["", "", ""]


@pytest.mark.parametrize(
    "argv, told",
    [
        (["steps=x,y"], "steps: expected a valid integer, got 'x'; none of the other jobs can run either"),
        (["stpes=3", "optimizer=adam,sgd"], "stpes: there is no such setting; did you mean steps? see --help for all"),
        (["stpes=3"], "stpes: there is no such setting"),
        (["steps=1,2", "hydra/launcher=jbolib"], "hydra/launcher: there is no 'jbolib'"),
        (["steps=1,2", "hydra.launcher.n_jobs=2"], "Could not override 'hydra.launcher.n_jobs'"),
        (["steps=1,2", "hydra.run.dir=x"], "hydra.run.dir: each job of a sweep has a folder in the sweep's own"),
        (["steps=1,2", "hydra.sweep.dir="], "hydra.sweep.dir: expected a folder, got nothing"),
    ],
)
@pytest.mark.parametrize("flag", ["-m", "--multirun"])
def test_where_nothing_can_run_it_is_one_line_and_nothing_is_left(end, tmp_path, flag, argv, told):
    code, out, err = end(flag, *argv, claim=claim)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {told}")
    assert err.count("\n") == 1
    assert ("none of the other jobs" in err) == ("none of the other jobs" in told), "where all have the same mistake"
    assert list(tmp_path.iterdir()) == []


def test_of_two_folders_the_later_one_counts(end, tmp_path):
    end("-m", "steps=1,2", "hydra.sweep.dir=one", "hydra.sweep.dir=other", claim=claim)
    assert files(tmp_path) == {"other/sweep.csv"}


def test_a_launcher_that_fails_is_told_and_so_is_each_job(end, tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("no queue")

    monkeypatch.setattr(sys.modules["gpt.cli.sweep"], "_launched", fails)  # the name is also a function's
    code, _, err = end("-m", "steps=1,2,x", claim=claim)
    line = "unexpected RuntimeError: no queue; run again with debug=true for the traceback"
    refused = "steps: expected a valid integer, got 'x'"
    assert (code, err) == (1, f"error: job 3: {refused}\nerror: {line}\n")
    assert [r["status"] for r in rows(tmp_path / "runs/gpt")] == [f"failed: {line}"] * 2 + [f"failed: {refused}"]


def test_without_a_folder_to_claim_nothing_is_left(end, tmp_path):
    code, out, _ = end("-m", "steps=1,2")
    assert code == 0
    assert "at work 1 None\n" in out
    assert "at work 2 None\n" in out
    assert "sweep.csv" not in out
    assert list(tmp_path.iterdir()) == []
    told = "error: hydra.sweep.dir: run.py leaves nothing in a folder; leave it out\n"
    assert end("-m", "steps=1,2", "hydra.sweep.dir=x") == (2, "", told)


@pytest.mark.parametrize("argv, shown", [(["debug=true"], 2), (["debug=false,true"], 1), ([], 0)])
def test_debug_shows_the_traceback_of_the_jobs_that_have_it(end, argv, shown):
    def task(settings, run_dir):
        raise ZeroDivisionError

    code, _, err = end("-m", "steps=" + ("1,2" if len(argv) == 0 or "," not in argv[0] else "1"), *argv, task=task)
    assert code == 1
    assert err.count("Traceback") == shown


def test_a_job_leaves_no_state_to_the_next(end, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    seen = []

    def task(settings, run_dir):
        seen.append((Path.cwd(), warnings.formatwarning, list(sys.argv)))
        os.chdir("elsewhere")
        warnings.formatwarning = None
        sys.argv[1:] = ["gone"]
        raise ValueError

    before = warnings.formatwarning
    end("-m", "steps=1,2,3", task=task, claim=claim)
    assert [place for place, *_ in seen] == [tmp_path] * 3
    assert [argv[1:] for *_, argv in seen] == [["steps=1"], ["steps=2"], ["steps=3"]]
    assert all(form is not None for _, form, _ in seen)
    assert (Path.cwd(), sys.argv[1:], warnings.formatwarning) == (tmp_path, ["-m", "steps=1,2,3"], before)


def test_how_long_the_rest_takes_is_judged_by_what_is_done(tmp_path):
    work = Work(None, dict.fromkeys(range(1, 7)), tmp_path, {2: Report("failed: at once", {}, 1.0)})
    assert work._left() == ""
    work.reports |= {1: Report("done", {}, 10.0), 3: Report("done", {}, 20.0)}
    assert work._left() == ", about 0:00:45 left", "three more, of 15 s each"


def test_what_a_failed_job_held_is_let_go_of_before_the_next(end):
    class Model:
        def __init__(self):
            self.itself = self

    def task(settings, run_dir):
        left.append(last[-1]() if last else None)
        last.append(weakref.ref(Model()))
        raise ValueError

    last, left = [], []
    gc.disable()
    try:
        end("-m", "steps=1,2", task=task, claim=claim)
    finally:
        gc.enable()
    assert left == [None, None]


def test_a_job_whose_output_nobody_reads_says_so(end, tmp_path, monkeypatch):
    monkeypatch.setattr("gpt.cli.ending._reader_is_gone", lambda: True)

    def task(settings, run_dir):
        raise BrokenPipeError

    assert end("-m", "steps=1", task=task, claim=claim).code == 1
    assert [row["status"] for row in rows(tmp_path / "runs/gpt")] == ["failed: nobody reads its output"]


def test_hydra_writes_nothing_of_its_own(script, tmp_path):
    done = script("-m", "steps=1,2", "name=mine", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert files(tmp_path) == {"runs/mine/1/made", "runs/mine/2/made", "runs/mine/sweep.csv"}
    assert "HYDRA" not in done.stdout


@pytest.mark.parametrize("name, code", [("SIGINT", 130), ("SIGTERM", 143), ("SIGUSR1", 138)])
def test_a_signal_ends_the_sweep_and_the_table_tells(script, tmp_path, name, code):
    with script.start("-m", "budget=quick,sleep,late", cwd=tmp_path) as process:
        while "asleep" not in process.stdout.readline():
            pass
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, "interrupted\n")
    statuses = [row["status"] for row in rows(tmp_path / "runs/gpt")]
    assert statuses == ["done", "interrupted", "not run"]
    assert re.search(r"^2 +sleep +\d:\d\d:\d\d +interrupted$", out, re.M)
    assert re.search(r"^3 +late +not run$", out, re.M)


def test_a_reader_that_goes_away_does_not_end_the_sweep(script, tmp_path):
    with script.start("-m", "budget=null,1min,2min", cwd=tmp_path) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert [row["status"] for row in rows(tmp_path / "runs/gpt")][1:] == ["done", "done"]


def test_cfg_shows_each_job_and_runs_none(end, script):
    code, out, err = end("-m", "--cfg", "steps=2,x,4", "prompt=${a}, b", claim=claim)
    documents = list(yaml.safe_load_all(out))
    assert code == 1
    assert err == "error: job 2: steps: expected a valid integer, got 'x'\n"
    assert documents[0] == script.composed("steps=2", "prompt=${a}, b").model_dump()
    assert documents[1] is None
    assert documents[2]["steps"] == 4
    assert "--- # job 3 of 3: steps=4\n" in out


def test_jobs_side_by_side_in_other_processes(script, tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs hydra-joblib-launcher")
    argv = ["steps=2,3,x", "prompt=it's, 私", "hydra.sweep.dir=a b", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    done = script("-m", *argv, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "error: job 3: steps: expected a valid integer, got 'x'\n"
    assert [(row["square"], row["status"]) for row in rows(tmp_path / "a b")][:2] == [("4", "done"), ("9", "done")]
    assert (tmp_path / "a b/2/made").read_text() == "it's, 私"


def test_a_signal_ends_jobs_side_by_side(script, tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs hydra-joblib-launcher")
    argv = ["budget=sleep,sleep", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    started = time.monotonic()
    with script.start("-m", *argv, cwd=tmp_path) as process:
        for _ in range(2):
            while "asleep" not in process.stdout.readline():
                pass
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143
    assert time.monotonic() - started < 50, "the jobs sleep for a minute"
    assert [row["status"] for row in rows(tmp_path / "runs/gpt")] == ["interrupted"] * 2
