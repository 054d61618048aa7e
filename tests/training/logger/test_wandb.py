import json
import os
import subprocess
import sys
import warnings

import pytest
import wandb

from gpt.config import ROOT, UserError, parse
from gpt.training.logger import Loggers
from gpt.training.logger import wandb as ours
from gpt.training.logger.wandb import WandbConfig, choose_mode

KEY = "0123456789" * 4
pytestmark = pytest.mark.usefixtures("alone")


def test_the_configuration_is_read_back(tmp_path, train, info, read):
    train(tmp_path / "run", project="mine", group="sweep", tags=["a", "b"])
    (file,) = read.runs(tmp_path / "run")
    (run,) = read.of_kind(file, "run")
    config = {item.key: json.loads(item.value_json) for item in run.config.update if item.key != "_wandb"}
    assert config == info(tmp_path).run.settings
    assert (run.project, run.display_name, run.run_group, list(run.tags)) == ("mine", "run", "sweep", ["a", "b"])


@pytest.mark.parametrize(
    "folder, name, group", [("one", "one", ""), ("sweep/2", "sweep/2", "sweep"), ("../elsewhere/2", "2", "")]
)
def test_the_runs_of_a_sweep_are_together(folder, name, group, tmp_path, monkeypatch, info, read):
    monkeypatch.setattr(ours, "RUNS", tmp_path / "runs")
    where = (tmp_path / "runs" / folder).resolve()
    where.parent.mkdir(parents=True)
    logger = WandbConfig(mode="offline").build()
    logger.start(info(where))
    logger.finish()
    (run,) = read.of_kind(read.runs(where)[0], "run")
    assert (run.display_name, run.run_group) == (name, group)


def test_the_metrics_are_read_back_on_their_own_axis(tmp_path, train, read):
    train(tmp_path / "run")
    (file,) = read.runs(tmp_path / "run")
    first, second, evaluation, sample = read.history(file)
    assert first == {
        "step": 10, "tokens": 5120, "elapsed": 5.0, "train/lr": 0.01, "train/loss": 0.1, "train/grad_norm": 1.5,
        "train/tokens_per_second": 1024.0, "train/skipped": 0,
    }  # fmt: skip
    assert (second["step"], second["train/loss"]) == (20, 0.05)
    assert evaluation == {
        "step": 20, "tokens": 10240, "elapsed": 10.0, "validation/loss": 2.5, "validation/bits_per_byte": 1.25,
    }  # fmt: skip
    assert sample["step"] == 20
    assert [(metric.glob_name, metric.step_metric) for metric in read.of_kind(file, "metric")] == [("*", "step")]


def test_the_samples_are_a_table_that_grows(tmp_path, info, read):
    logger = WandbConfig(mode="offline").build()
    logger.start(info(tmp_path / "run"))
    texts = ["the army", "", "日本\n\n| a | <b>", "\u2028 🎉"]
    for step, text in enumerate(texts):
        logger.sample(step, text)
    logger.finish()
    (file,) = read.runs(tmp_path / "run")
    written = read.tables(file)
    assert [table["columns"] for table in written] == [["step", "text"]] * 4
    assert [len(table["data"]) for table in written] == [1, 2, 3, 4]
    assert written[-1]["data"] == [[step, text] for step, text in enumerate(texts)]


def test_the_table_stays_small_and_spans_the_training(tmp_path, monkeypatch, info):
    monkeypatch.setattr(ours, "ROWS", 4)
    logger = WandbConfig(mode="offline").build()
    logger.start(info(tmp_path / "run"))
    shown = []
    for step in range(10):
        logger.sample(step, "")
        shown.append([row[0] for row in logger.rows])
    logger.finish()
    assert shown[3:7] == [[0, 1, 2, 3], [0, 2, 4], [0, 2, 4, 5], [0, 4, 6]]
    assert all(rows[-1] == step and rows[0] == 0 for step, rows in enumerate(shown[:9]))


def test_several_runs_of_one_process_are_runs_of_their_own(tmp_path, train, read):
    for name in ("one", "two"):
        train(tmp_path / name)
    files = [file for name in ("one", "two") for file in read.runs(tmp_path / name)]
    assert len({read.of_kind(file, "run")[0].run_id for file in files}) == len(files) == 2
    assert [[row["step"] for row in read.history(file)] for file in files] == [[10, 20, 20, 20]] * 2
    assert [len(read.tables(file)[-1]["data"]) for file in files] == [1, 1]


def test_a_run_that_was_never_finished_does_not_go_on_in_the_next(tmp_path, info, train, read):
    failed = WandbConfig(mode="offline").build()
    failed.start(info(tmp_path / "one"))
    assert train(tmp_path / "two").id != failed.id
    assert [row["step"] for row in read.history(read.runs(tmp_path / "two")[0])] == [10, 20, 20, 20]


def test_a_resumed_run_goes_on_under_its_id_without_what_is_void(tmp_path, train, read):
    train(tmp_path / "run")
    train(tmp_path / "run", resumed_at=20)
    train(tmp_path / "run", resumed_at=20)  # killed after 40, without a checkpoint since
    files = read.runs(tmp_path / "run")
    assert len(files) == 3
    assert {run.run_id for file in files for run in read.of_kind(file, "run")} == {files[0].stem.removeprefix("run-")}
    assert [row["step"] for row in read.history(files[2])] == [30, 40, 40, 40]
    assert [[row[0] for row in read.tables(file)[-1]["data"]] for file in files] == [[20], [20, 40], [20, 40]]


def test_without_a_key_it_is_offline_and_says_how_to_upload(tmp_path, train, capfd, read):
    with pytest.warns(UserWarning, match="there is no key") as told:
        train(tmp_path / "a run", mode="auto")
    (message,) = [str(warning.message) for warning in told]
    assert message == (
        "wandb: there is no key (WANDB_API_KEY, or `wandb login`), so it writes offline; "
        f"to upload: wandb sync '{tmp_path}/a run/wandb'"
    )
    assert capfd.readouterr() == ("", "")
    (file,) = read.runs(tmp_path / "a run")
    command = [sys.executable, "-m", "wandb", "sync", "--dry-run", str(tmp_path / "a run" / "wandb")]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "Would sync 1 run" in shown.stderr + shown.stdout
    assert file.name in shown.stderr + shown.stdout


def test_offline_because_asked_for_is_no_warning(tmp_path, train, monkeypatch, read):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(tmp_path / "one")
        monkeypatch.setenv("WANDB_MODE", "offline")
        wandb.teardown()
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        train(tmp_path / "two", mode="online")
    assert len(read.runs(tmp_path / "one")) == len(read.runs(tmp_path / "two")) == 1


def test_disabled_by_the_environment_writes_no_run(tmp_path, train, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    train(tmp_path / "run", mode="online")
    assert [path.name for path in (tmp_path / "run").rglob("*") if path.is_file()] == ["run.json"]


@pytest.mark.parametrize("where", ["environment", "netrc"])
def test_a_key_is_found_where_wandb_keeps_it(where, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    if where == "environment":
        monkeypatch.setenv("WANDB_API_KEY", KEY)
    else:
        netrc = tmp_path / "home" / ".netrc"
        netrc.write_text(f"machine 127.0.0.1:9\n  login user\n  password {KEY}\n")
        netrc.chmod(0o600)
    assert choose_mode("auto", tmp_path) == "online"
    assert choose_mode("offline", tmp_path) == "offline"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize("terminal", [True, False])
def test_nobody_is_asked_and_nothing_is_left_elsewhere(terminal, tmp_path, script, read):
    folder = tmp_path / "run"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    master, slave = os.openpty()
    if not terminal:
        os.close(slave)
        slave = subprocess.DEVNULL
    with (tmp_path / "output").open("wb") as output:
        subprocess.run(
            [sys.executable, "-W", "ignore", str(script), str(folder)],
            stdin=slave,
            stdout=slave if terminal else output,
            stderr=slave if terminal else output,
            env=environment,
            timeout=60,
            check=True,
        )
    said = os.read(master, 1 << 16) if terminal else (tmp_path / "output").read_bytes()
    assert said.decode().split("\n")[0].strip() == "said while it runs"
    assert len(said.decode().strip().splitlines()) == 1, said
    (file,) = read.runs(folder)
    assert read.history(file)[0] == {"step": 10, "train/loss": 2.5}
    assert read.tables(file)[0]["data"] == [[10, "私は"]]
    assert read.of_kind(file, "run")[0].project == "日本"
    assert not read.of_kind(file, "output_raw"), "what is printed is not captured"
    assert not any((tmp_path / "home").iterdir())
    assert not any((tmp_path / "cwd").iterdir())
    assert [path.name for path in folder.iterdir()] == ["wandb"]
    links = {path.name for path in folder.rglob("*") if path.is_symlink()}
    assert links <= {"debug-core.log"}, "only its own process's, which has no setting"


def test_the_environment_is_as_it_was(tmp_path, train, monkeypatch):
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    before = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    train(tmp_path / "run")
    assert {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"} == before
    assert (tmp_path / "cache").is_dir(), "what the user has set stays"
    assert wandb.run is None


@pytest.mark.parametrize("failed", [True, False])
def test_a_run_that_failed_is_marked_so(failed, tmp_path, info, metrics, read):
    logger = Loggers([WandbConfig(mode="offline").build()])
    logger.start(info(tmp_path / "run"))
    try:
        logger.log(metrics(10), 0.1)
        if failed:
            raise OSError("the disk")
    except OSError:
        logger.finish()
    else:
        logger.finish()
    (file,) = read.runs(tmp_path / "run")
    assert [ended.exit_code for ended in read.of_kind(file, "exit")] == [int(failed)]


@pytest.mark.parametrize("settings", [{"mode": "disabled"}, {"project": ""}, {"tags": "one"}, {"key": "1"}])
def test_mistakes_are_refused(settings):
    with pytest.raises(UserError, match="logger.wandb"):
        parse(WandbConfig, {"name": "wandb", **settings}, "logger.wandb")
