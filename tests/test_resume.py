"""A run that is stopped and resumed gives the same bits as one that is not, whatever it is made of.

Most are trained in this process, by the script's own function, with a signal that comes from a thread; some in
processes of their own, which are killed.
"""

import csv
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file

from gpt.cli.composition import compose
from gpt.config import ROOT, UserError
from gpt.run import load
from gpt.signals import Interrupted, raised
from gpt.training.settings import TrainSettings

TINY = [
    "tokenizer=byte", "model.n_layer=1", "model.n_head=2", "model.d_model=16", "model.context=16", "model.dropout=0.1",
    "dataset.years=[1790,1800]", "batch_size=8", "eval_every=50", "eval_tokens=500", "logger=[]", "device=cpu",
]  # fmt: skip


def load_script():
    spec = importlib.util.spec_from_file_location("train_script", ROOT / "train.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


TRAIN = load_script().train


def train(folder, *arguments):
    own = any(argument.startswith("dataset=") for argument in arguments)
    tiny = [argument for argument in TINY if not (own and argument.startswith("dataset."))]
    settings, run_dir = compose("train", [*tiny, *arguments, f"hydra.run.dir={folder}"], TrainSettings)
    return TRAIN(settings, run_dir)


def resume(folder, *arguments):
    settings, run_dir = compose("train", [f"resume={folder}", *arguments], TrainSettings)
    return TRAIN(settings, run_dir)


def steps_logged(folder):
    try:
        with (folder / "metrics.csv").open(newline="") as file:
            return [int(row["step"]) for row in csv.DictReader(file) if row["loss"]]
    except FileNotFoundError:
        return []


def wait_for_steps(folder, number, process=None):
    deadline = time.monotonic() + 120
    while not any(step >= number for step in steps_logged(folder)):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{folder} has no step {number} after two minutes"
        time.sleep(0.002)


@contextmanager
def struck(folder, number=signal.SIGTERM, after=20):
    """Within, the signal comes some time after the update `after`."""

    training = threading.Event()

    def strike():
        wait_for_steps(folder, after)
        if training.is_set():
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=strike, daemon=True)
    training.set()
    with raised():
        thread.start()
        try:
            yield
        finally:
            training.clear()
    thread.join()


def last(folder):
    return sorted((folder / "checkpoints").iterdir())[-1]


def assert_same(one, other):
    assert last(one).name == last(other).name
    for name in ("model.safetensors", "optimizer.safetensors"):
        first, second = load_file(last(one) / name), load_file(last(other) / name)
        assert first.keys() == second.keys()
        for key in first:
            assert torch.equal(first[key], second[key]), f"{name}: {key}"


def stop_and_resume(tmp_path, *arguments, steps=200):
    """Train to the end, and again with a signal on the way."""
    train(tmp_path / "whole", *arguments, f"steps={steps}")
    with struck(tmp_path / "stopped"), pytest.raises(Interrupted):
        train(tmp_path / "stopped", *arguments, f"steps={steps}")
    assert 20 <= int(last(tmp_path / "stopped").name.removeprefix("step_")) < steps
    resume(tmp_path / "stopped")
    return tmp_path / "whole", tmp_path / "stopped"


@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_bit_for_bit(tmp_path, optimizer, precision, accumulate):
    parts = [f"optimizer={optimizer}", f"precision={precision}", f"accumulate={accumulate}"]
    assert_same(*stop_and_resume(tmp_path, *parts, "compile=off"))


@pytest.mark.parametrize("attention", ["sdpa", "sliding_window", "linear"])
def test_bit_for_bit_where_tokens_see_only_their_own_document(tmp_path, attention):
    text = tmp_path / "mine.txt"
    text.write_text("\n\n".join(f"Document {number * number % 97}." for number in range(600)))
    own = ["dataset=text", f"dataset.path={text}", "dataset.separator=\\n\\n", f"model/attention={attention}"]
    whole, stopped = stop_and_resume(tmp_path, *own, "packing=documents", "accumulate=2", "compile=off")
    assert_same(whole, stopped)


@pytest.mark.skipif(not shutil.which("g++"), reason="compiling needs a C++ compiler")
def test_bit_for_bit_where_it_is_compiled(tmp_path):
    whole, stopped = stop_and_resume(tmp_path, "compile=strict", "precision=bf16")
    assert_same(whole, stopped)


def test_every_so_many_steps_resuming_gives_the_same(tmp_path):
    train(tmp_path / "whole", "steps=60", "save_every=7", "keep=99", "compile=off")
    saved = sorted((tmp_path / "whole" / "checkpoints").iterdir())
    assert len(saved) == 10, "after 7, 14, … 56, after 50 for the best, and after 60"
    for checkpoint in saved[:-1:3]:
        folder = tmp_path / checkpoint.name
        (folder / "checkpoints").mkdir(parents=True)
        shutil.copytree(checkpoint, folder / "checkpoints" / checkpoint.name)
        shutil.copy(tmp_path / "whole" / "config.yaml", folder)
        resume(folder)
        assert_same(tmp_path / "whole", folder)


def test_evaluating_and_saving_at_other_times_changes_no_weight(tmp_path):
    train(tmp_path / "one", "steps=40", "eval_every=3", "save_every=4", "compile=off")
    train(tmp_path / "other", "steps=40", "eval_every=100", "save_every=100", "compile=off")
    assert_same(tmp_path / "one", tmp_path / "other")


def test_metrics_go_on_as_if_nothing_had_been(tmp_path):
    whole, stopped = stop_and_resume(tmp_path, "compile=off")
    at = int((last(stopped)).name.removeprefix("step_"))
    assert at == 200
    logged = steps_logged(stopped)
    assert logged == sorted(set(logged))
    assert set(steps_logged(whole)) <= set(logged)
    evaluated = [[r["validation_loss"] for r in rows(folder) if r["validation_loss"]] for folder in (whole, stopped)]
    assert evaluated[0] == evaluated[1]
    elapsed = [float(r["elapsed"]) for r in rows(stopped)]
    assert elapsed == sorted(elapsed)


def rows(folder):
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_more_steps_go_on_after_the_end(tmp_path):
    train(tmp_path / "run", "steps=20", "schedule=constant", "schedule.warmup=0", "compile=off")
    with pytest.raises(UserError, match="20 updates and is at its end, steps=20; to train on, give more steps"):
        resume(tmp_path / "run")
    resume(tmp_path / "run", "steps=40")
    train(tmp_path / "whole", "steps=40", "schedule=constant", "schedule.warmup=0", "compile=off")
    assert_same(tmp_path / "run", tmp_path / "whole")
    with pytest.raises(UserError, match="steps=40"):
        resume(tmp_path / "run")


def test_changed_text_is_refused(tmp_path):
    text = tmp_path / "mine.txt"
    text.write_text("To be, or not to be, that is the question. " * 100)
    train(tmp_path / "run", "dataset=text", f"dataset.path={text}", "steps=4")
    text.write_text("To be, or not to be, that is the question! " * 100)
    with pytest.raises(UserError, match="resume: the text, .*has changed since"):
        resume(tmp_path / "run", "steps=8")


def test_another_runs_weights_and_tokenizer_begin_a_new_run(tmp_path):
    train(tmp_path / "first", "steps=60", "compile=off")
    arguments = [f"init={tmp_path / 'first'}", "dataset.years=[1810,1815]", "steps=1", "optimizer.lr=1e-9", "logger=[]"]
    more = [*arguments, "compile=off", "precision=fp32", "model.dropout=0", f"hydra.run.dir={tmp_path / 'second'}"]
    settings, run_dir = compose("train", more, TrainSettings)
    TRAIN(settings, run_dir)
    one, other = (load_file(last(tmp_path / name) / "model.safetensors") for name in ("first", "second"))
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[key], other[key], atol=1e-6) for key in one)
    assert (last(tmp_path / "first") / "vocabulary.json").read_bytes() == (
        last(tmp_path / "second") / "vocabulary.json"
    ).read_bytes()
    resume(tmp_path / "second", "steps=2")
    assert last(tmp_path / "second").name == "step_00000002"


def test_another_runs_model_reads_four_times_its_context(tmp_path):
    """Its weights fit, since rotary positions have none; every fourth angle is one that it knows."""
    train(tmp_path / "first", "steps=1", "compile=off")
    more = ["model.context=64", "model.position.factor=4", "packing=documents", "steps=1", "compile=off", "logger=[]"]
    arguments = [f"init={tmp_path / 'first'}", *more, f"hydra.run.dir={tmp_path / 'second'}"]
    settings, run_dir = compose("train", arguments, TrainSettings)
    TRAIN(settings, run_dir)
    model = load(tmp_path / "second", device="cpu").model
    assert (model.config.context, model.position.factor) == (64, 4.0)
    assert model(torch.zeros(1, 64, dtype=torch.int64)).isfinite().all()


def start(folder, *arguments):
    command = [sys.executable, str(ROOT / "train.py"), *arguments]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


@pytest.mark.parametrize(
    "number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)], ids=lambda v: str(int(v))
)
def test_a_signal_saves_and_its_code_says_so(tmp_path, number, code):
    process = start(tmp_path, *TINY, "steps=100000", "compile=off", "hydra.run.dir=run")
    wait_for_steps(tmp_path / "run", 30, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    at = int(last(tmp_path / "run").name.removeprefix("step_"))
    assert errors == f"interrupted after step {at:,} and saved; to go on: python {ROOT / 'train.py'} resume=run\n"


def test_killed_without_warning_it_goes_on_from_the_last_checkpoint(tmp_path):
    train(tmp_path / "whole", "steps=300", "save_every=10", "compile=off")
    process = start(tmp_path, *TINY, "steps=300", "save_every=10", "compile=off", "hydra.run.dir=run")
    wait_for_steps(tmp_path / "run", 50, process)
    process.kill()
    process.communicate()
    assert steps_logged(tmp_path / "run")[-1] < 300
    resume(tmp_path / "run")
    assert_same(tmp_path / "whole", tmp_path / "run")
    assert steps_logged(tmp_path / "run") == steps_logged(tmp_path / "whole")


def test_killed_before_the_first_checkpoint_it_begins_at_step_0(tmp_path):
    train(tmp_path / "whole", "steps=300", "eval_every=300", "compile=off")
    quiet = ["steps=300", "eval_every=300", "save_every=300", "compile=off", "hydra.run.dir=run"]
    process = start(tmp_path, *TINY, *quiet)
    wait_for_steps(tmp_path / "run", 30, process)
    process.kill()
    process.communicate()
    assert not (tmp_path / "run" / "checkpoints").exists()
    resume(tmp_path / "run")
    assert_same(tmp_path / "whole", tmp_path / "run")
    assert steps_logged(tmp_path / "run") == steps_logged(tmp_path / "whole")


def test_auto_starts_then_goes_on_then_starts_anew(tmp_path):
    arguments = [*TINY, "compile=off", "resume=auto", "hydra.run.dir=run"]
    first = start(tmp_path, *arguments, "steps=100000")
    wait_for_steps(tmp_path / "run", 20, first)
    second = start(tmp_path, *arguments, "steps=100000")
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2, "the first one still trains"
    assert "run is there already" in errors
    first.terminate()
    first.communicate(timeout=60)
    at = int(last(tmp_path / "run").name.removeprefix("step_"))
    third = start(tmp_path, *arguments, f"steps={at + 5}")
    third.communicate(timeout=60)
    assert third.returncode == 0
    assert last(tmp_path / "run").name == f"step_{at + 5:08d}"
