"""The folder of a run that is trained: held by one process, its metrics and checkpoints."""

import csv
import errno
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from safetensors import SafetensorError

from gpt import checkpoint, run_folder
from gpt.config import RunError, UserError
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.run_folder import METRICS, RunFolder, read_metrics, read_settings
from gpt.run_notes import read_samples, read_summary


def test_metrics_have_one_row_each_and_fixed_columns(tmp_path, make_run):
    run = make_run(tmp_path / "run")
    run.log({"step": 1, "loss": 2.5})
    run.log({"step": 1, "validation_loss": 2.25})
    with (run.folder / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(METRICS)
    assert [(r["step"], r["loss"], r["validation_loss"]) for r in rows] == [
        ("1", "2.5", ""),
        ("1", "", "2.25"),
    ]


def test_config_yaml_is_plain_and_whole(tmp_path, make_run):
    run = make_run(tmp_path / "run")
    text = (run.folder / "config.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text) == run.settings
    assert list(yaml.safe_load(text)) == ["name", "model"], "in the order of the settings"
    assert "私の run" in text


def test_saving_keeps_the_best_and_the_last(tmp_path, make_run):
    run = make_run(tmp_path / "run", steps=[(1, 2.0), (2, 1.5), (3, 1.9), (4, None)])
    assert sorted(p.name for p in (run.folder / "checkpoints").iterdir()) == ["step_00000002", "step_00000004"]


def test_one_process_trains_in_a_folder(make_run, bytes_data, tmp_path):
    opened = make_run(tmp_path / "run")
    command = [sys.executable, "-c", "import gpt.run_folder, pathlib; gpt.run_folder.RunFolder(pathlib.Path('run'))"]
    other = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "UserError: run: another process trains in it" in other.stderr
    del opened
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).returncode == 0


def test_what_came_after_the_last_checkpoint_is_forgotten(make_run, bytes_data, tmp_path):
    folder = make_run(tmp_path / "run", steps=[(2, 1.0)]).folder
    for step in (1, 2, 3):
        RunFolder(folder).log({"step": step, "loss": 0.5})
    with (folder / "metrics.csv").open("a") as file:
        file.write("x,1,,,,,,,,,,,\n2,1,,,,,,,,,,,,9\n")  # rows that somebody else wrote: no step, a column more
        file.write("2,1")  # a row that was being written
    opened = RunFolder(folder)
    assert opened.last.state.step == 2
    opened.start({"name": "resumed"}, bytes_data, keep=1)
    opened.log({"step": 3, "loss": 0.25})
    with (folder / "metrics.csv").open(newline="") as file:
        assert [(r["step"], r["loss"]) for r in csv.DictReader(file)] == [("1", "0.5"), ("2", "0.5"), ("3", "0.25")]
    assert [p.name for p in (folder / "checkpoints").iterdir()] == ["step_00000002"]
    assert read_settings(folder) == {"name": "resumed"}
    assert {p.name for p in folder.iterdir()} == {"config.yaml", "metrics.csv", "checkpoints"}


@pytest.mark.skipif(os.name == "nt", reason="needs pipes of Unix")
@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("../outside.csv"), lambda path: path.mkdir()])
def test_metrics_that_are_no_file_of_the_folder_are_refused(make_run, tmp_path, put):
    folder = make_run(tmp_path / "run").folder
    (folder / "metrics.csv").rename(tmp_path / "outside.csv")
    put(folder / "metrics.csv")
    with pytest.raises(UserError, match=r"metrics\.csv: this is no file, or a link out of the run's folder; move it"):
        RunFolder(folder)


def test_a_line_of_metrics_without_an_end_is_not_held_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "LONGEST_ROW", 8)
    (tmp_path / "metrics.csv").write_text(f"step\n{'x' * 99}\n1\n2\n")
    assert read_metrics(tmp_path, until=1) == [{"step": "1"}]


def test_a_step_of_more_digits_than_python_reads_is_told(tmp_path):
    (tmp_path / "metrics.csv").write_text(f"step\n{'9' * 5000}\n")
    with pytest.raises(UserError, match=r"metrics\.csv: cannot be read"):
        read_metrics(tmp_path, until=1)


@pytest.mark.parametrize("name", ["checkpoints", "wandb", "wandb/wandb", "tensorboard"])
def test_a_link_out_of_the_folder_is_refused(make_run, tmp_path, name):
    folder = make_run(tmp_path / "run", steps=[]).folder
    (tmp_path / "elsewhere").mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"run/{name}: this is a link out of the run's folder"):
        RunFolder(folder)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"loss,lr\n1,2\n", b"step,loss,mine\n1,2,3\n", b"step\xff\n1\n"])
def test_metrics_that_are_none_of_a_run_are_told_at_once_and_stay(make_run, tmp_path, content):
    folder = make_run(tmp_path / "run").folder
    (folder / "metrics.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"metrics\.csv: .*move"):
        RunFolder(folder)
    assert (folder / "metrics.csv").read_bytes() == content


def test_samples_after_the_last_checkpoint_are_forgotten(make_run, bytes_data, tmp_path):
    opened = make_run(tmp_path / "run", steps=[(2, 1.0)])
    opened.keep_sample(2, "two\n<b>")
    opened.keep_sample(3, "three")
    assert opened.sample == (3, "three")
    with (opened.folder / "samples.jsonl").open("a") as file:
        file.write('{"step": 2, "te')  # a line that was being written
    folder = opened.folder
    del opened
    again = RunFolder(folder)
    assert again.sample is None
    again.start({}, bytes_data, keep=1, summary=[("model", "私の"), ("data", "much")])
    again.keep_sample(4, "four")
    assert read_samples(folder, until=9) == [(2, "two\n<b>"), (4, "four")]
    assert read_summary(folder) == {"model": "私の", "data": "much"}


def test_a_sample_that_cannot_be_written_is_told_and_left_out(make_run, tmp_path, monkeypatch):
    opened = make_run(tmp_path / "run")
    monkeypatch.setattr(run_folder, "append_sample", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "no disk")))
    with pytest.warns(UserWarning, match=r"samples\.jsonl cannot be written \(no disk\); a sample is left out"):
        opened.keep_sample(1, "text")


@pytest.mark.skipif(os.name == "nt", reason="needs links of Unix")
def test_samples_that_are_a_link_out_of_the_folder_are_refused(make_run, tmp_path):
    folder = make_run(tmp_path / "run").folder
    (folder / "samples.jsonl").symlink_to("../outside.jsonl")
    with pytest.raises(UserError, match=r"samples\.jsonl: this is no file of samples, or a link"):
        RunFolder(folder)


def test_so_many_of_the_last_are_kept(tmp_path, make_run, bytes_data, state_of):
    opened = make_run(tmp_path / "run", steps=[])
    opened.start({}, bytes_data, keep=2)
    model = GPT(GPTConfig(vocab_size=257, context=8, n_layer=1, n_head=2, d_model=8))
    for step, loss in [(1, 2.0), (2, 2.5), (3, None), (4, None)]:
        opened.save(model.state_dict(), {}, state_of(step, loss))
    kept = sorted(path.name for path in (opened.folder / "checkpoints").iterdir())
    assert kept == ["step_00000001", "step_00000003", "step_00000004"]
    assert opened.last.state.data == "f00d"


@pytest.mark.parametrize(
    "content, tells",
    [
        (None, "is no run's folder: it has no config.yaml"),
        (b"- a\n- b\n", "settings are expected"),
        (b"a: [", "this is no YAML"),
        (b"a: !!python/object/apply:os.system ['touch harm']", "this is no YAML"),
        (b"\xff\xfe\x00", "this is no YAML"),
        (b"a: " + b"x" * (1 << 20), "too large"),
        (b"[" * 5000, "this is no YAML"),
        (b"a: " + b"[" * 60 + b"]" * 60, "this is no YAML"),
        (b"a: !!int ''", "this is no YAML"),
        (b"a: !!bool x", "this is no YAML"),
        (b"a: !!timestamp x", "this is no YAML"),
        (b"a: &a [*a]", "this is no YAML"),
        (b"a: &a 1\nb: *a", "this is no YAML"),
        (b"a0: &a0 {x: 1}\na1: &a1 {<<: [*a0, *a0]}", "this is no YAML"),
    ],
)
def test_a_config_that_is_none_is_refused(tmp_path, monkeypatch, content, tells):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(UserError, match=tells):
        read_settings(tmp_path)
    assert not (tmp_path / "harm").exists()


def test_a_key_that_is_no_text_becomes_one(tmp_path):
    (tmp_path / "config.yaml").write_text(f"? 0x{'f' * 5000}\n: 1\nnull: 2\n")
    assert read_settings(tmp_path) == {"a number of 20000 bits": 1, "null": 2}


def test_a_config_elsewhere_is_not_read(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "outside.yaml").write_text("seed: 1\n")
    (tmp_path / "run" / "config.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(UserError, match=r"is no run's folder: it has no config\.yaml"):
        read_settings(tmp_path / "run")


def test_a_config_of_the_largest_size_is_read(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("a: 1\n")
    monkeypatch.setattr(run_folder, "LARGEST_SETTINGS", 5)
    assert read_settings(tmp_path) == {"a": 1}
    monkeypatch.setattr(run_folder, "LARGEST_SETTINGS", 4)
    with pytest.raises(UserError, match="too large"):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("I/O error (os error 28)")], ids=repr
)
def test_a_full_disk_is_told_as_what_it_is(make_run, state_of, tmp_path, monkeypatch, error):
    opened = make_run(tmp_path / "run", steps=[(2, 1.0)])

    def fail(*_):
        raise error

    monkeypatch.setattr(checkpoint, "write", fail)
    monkeypatch.setattr(run_folder, "PAUSES", ())
    with pytest.raises(
        RunError, match="no room is left on the disk; .*resume=.*run: its last checkpoint is step_00000002"
    ):
        opened.save({}, {}, state_of(3))
    monkeypatch.setattr(checkpoint, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.EACCES, "denied")))
    with pytest.raises(RunError, match="cannot be written to .*denied.*; mend that"):
        opened.save({}, {}, state_of(3))


def test_what_cannot_be_saved_is_tried_again(make_run, state_of, tmp_path, monkeypatch):
    opened = make_run(tmp_path / "run", steps=[(2, 1.0)])
    write, slept = checkpoint.write, []

    def fail_at_first(*arguments):
        if len(slept) < 2:
            raise OSError(errno.EIO, "Input/output error")
        return write(*arguments)

    monkeypatch.setattr(checkpoint, "write", fail_at_first)
    monkeypatch.setattr(run_folder.time, "sleep", slept.append)
    model = GPT(GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8))
    assert opened.save(model.state_dict(), {}, state_of(3)).state.step == 3
    assert slept == list(run_folder.PAUSES)


def test_metrics_that_cannot_be_written_follow_later(make_run, tmp_path, recwarn):
    opened = make_run(tmp_path / "run", steps=[(2, 1.0)])
    path = tmp_path / "run" / "metrics.csv"
    path.rename(tmp_path / "away")
    path.mkdir()
    opened.log({"step": 3, "loss": 0.5})
    opened.log({"step": 4, "loss": 0.25})
    (told,) = recwarn
    assert str(told.message).endswith("metrics.csv cannot be written (Is a directory); what it lacks follows later")
    path.rmdir()
    (tmp_path / "away").rename(path)
    opened.log({"step": 5, "loss": 0.125})
    with path.open(newline="") as file:
        assert [(r["step"], r["loss"]) for r in csv.DictReader(file)] == [("3", "0.5"), ("4", "0.25"), ("5", "0.125")]


def test_metrics_that_wait_are_written_before_a_checkpoint_that_covers_them(make_run, state_of, tmp_path, recwarn):
    opened = make_run(tmp_path / "run", steps=[(2, 1.0)])
    path = tmp_path / "run" / "metrics.csv"
    path.rename(tmp_path / "away")
    opened.log({"step": 3, "loss": 0.5})
    (tmp_path / "away").rename(path)
    opened.save(
        GPT(GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)).state_dict(), {}, state_of(3)
    )
    assert [(r["step"], r["loss"]) for r in run_folder.read_metrics(tmp_path / "run", until=9)] == [("3", "0.5")]
    assert len(recwarn) == 1


def test_that_older_checkpoints_cannot_be_removed_is_no_failure(make_run, state_of, tmp_path, monkeypatch):
    opened = make_run(tmp_path / "run", steps=[(1, None)])
    weights = GPT(GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)).state_dict()
    prune = checkpoint.prune

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "prune", fail)
    with pytest.warns(UserWarning, match="older checkpoints stay for now: No space left on device"):
        assert opened.save(weights, {}, state_of(2)).state.step == 2
    monkeypatch.setattr(checkpoint, "prune", prune)
    opened.save(weights, {}, state_of(3))
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step_00000003"]


def test_a_checkpoint_that_was_removed_by_hand_is_no_matter(make_run, state_of, tmp_path):
    opened = make_run(tmp_path / "run", steps=[(1, None), (2, None)])
    shutil.rmtree(opened.last.folder)
    opened.save(
        GPT(GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)).state_dict(), {}, state_of(3)
    )
    assert [p.name for p in (opened.folder / "checkpoints").iterdir()] == ["step_00000003"]


def test_what_was_being_saved_or_removed_by_a_killed_process_goes(make_run, bytes_data, tmp_path):
    folder = make_run(tmp_path / "run", steps=[(1, None)]).folder
    for name in (".saving-x1", ".removing-y2", ".mine"):
        (folder / "checkpoints" / name / "step_00000007").mkdir(parents=True)
    RunFolder(folder).start({}, bytes_data, keep=1)
    assert {p.name for p in (folder / "checkpoints").iterdir()} == {"step_00000001", ".mine"}


def test_a_folder_that_is_removed_while_it_is_trained_in_is_made_anew(make_run, state_of, tmp_path, recwarn):
    opened = make_run(tmp_path / "run", steps=[(2, 1.0)])
    shutil.rmtree(tmp_path / "run")
    model = GPT(GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8))
    opened.save(model.state_dict(), {}, state_of(3))
    assert [str(w.message) for w in recwarn] == [
        f"{tmp_path / 'run'} was removed, with all that it held; it is made anew"
    ]
    assert opened.best is None, "what was removed is no checkpoint"
    opened.log({"step": 4, "loss": 0.5})
    with pytest.raises(UserError, match="another process trains in it"):
        RunFolder(tmp_path / "run")
    del opened
    again = RunFolder(tmp_path / "run")
    assert [p.name for p in (tmp_path / "run" / "checkpoints").iterdir()] == ["step_00000003"]
    assert again.last.state.step == 3


def test_a_configuration_that_is_removed_while_it_is_trained_is_written_anew(make_run, state_of, tmp_path, recwarn):
    """The folder is still held, and its checkpoints are there."""
    opened = make_run(tmp_path / "run", steps=[(2, 1.0)])
    (tmp_path / "run" / "config.yaml").unlink()
    model = GPT(GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8))
    opened.save(model.state_dict(), {}, state_of(3))
    assert (tmp_path / "run" / "config.yaml").is_file()
    assert opened.best.state.step == 2
    assert not recwarn
