"""Recipes trained by train.py itself are in tests/test_train.py; here it is played by a stub."""

import subprocess
from pathlib import Path

import pytest
import torch

from gpt.checkpoint import Checkpoint, State
from gpt.config import RunError, UserError
from gpt.insight.bench import loss
from gpt.insight.bench.loss import Finish, reference_shape, reference_speed, run_recipes, train
from gpt.insight.bench.page import FINISH, finish_rows
from gpt.insight.bench.race import Rules
from gpt.model.gpt import GPT

RULES = Rules(1, 0.001, 0, torch.device("cpu"))


@pytest.fixture
def state():
    def build(compiled: bool = False) -> State:
        asides = {"evaluating": 10.0, "probing": 1.0, **({"compiling": 29.0} if compiled else {})}
        return State(
            step=2000, tokens=1536000, elapsed=100.0, asides=asides, validation_loss=1.5, skipped=0,
            skipped_in_a_row=0, spikes=0, losses=[], accumulate=1, scaler={}, device="cpu", precision="fp32",
            compiled=compiled, data="f00d",
        )  # fmt: skip

    return build


@pytest.fixture
def played(monkeypatch, state):
    """What was run, in place of train.py, which compiles."""
    commands = []

    def play(command, env, **_):
        commands.append((command[2:], Path(env["TORCHINDUCTOR_CACHE_DIR"])))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(loss.subprocess, "run", play)
    monkeypatch.setattr(loss.checkpoint, "find", lambda folder: [Checkpoint(folder, state(compiled=True))])
    return commands


def test_each_recipe_is_trained_with_all_overrides_and_compiled_again_in_the_same_cache(
    played, bench_settings, monkeypatch
):
    """R of 1,536,000 tokens at 1.3 times 1,000 and, after it, 2,000 tokens/s: about 787.7 s."""
    speeds = iter([1000.0, 2000.0])
    monkeypatch.setattr(loss, "reference_speed", lambda settings, rules: lambda: next(speeds))
    text = "dataset=text dataset.path='my notes.txt'"
    (finish,) = run_recipes(bench_settings(recipes=["nanogpt_cpu"], overrides=text, device="cpu"), RULES)
    (first, cache), (second, same) = played
    typed = ["experiment=nanogpt_cpu", "device=cpu", "dataset=text", "dataset.path=my notes.txt"]
    assert first[:4] == second[:4] == typed
    assert ("steps=1" in first, "steps=1" in second, cache == same) == (False, True, True)
    assert not cache.parent.exists()
    assert finish.bar == pytest.approx(1_536_000 / (1.3 * 1500))
    assert (finish.cached, finish.state.training) == (29.0, 60.0)


@pytest.mark.parametrize("code, error", [(2, UserError), (1, RunError)])
def test_a_training_that_fails_is_told_in_its_own_words(code, error, monkeypatch, tmp_path):
    done = subprocess.CompletedProcess([], code, "", "a warning\nerror: steps: expected a number\n")
    monkeypatch.setattr(loss.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(error, match="^train.py experiment=x steps=y: steps: expected a number$"):
        train(["experiment=x", "steps=y"], tmp_path, "run")


def test_the_reference_is_nanogpts_model_for_a_cpu(bench_settings):
    """12 d² of a layer, and its 13 d of biases and norms; the tables of 65 and 64 rows; the last norm."""
    width = 128
    count = 4 * (12 * width**2 + 13 * width) + (65 + 64) * width + 2 * width
    assert GPT(reference_shape()).count_parameters() == count
    pytest.importorskip("transformers")
    assert reference_speed(bench_settings(), RULES)() > 0


def test_without_transformers_there_is_no_bar(monkeypatch, bench_settings, capsys):
    def none(model):
        raise loss.NoPeerError("transformers is not installed")

    monkeypatch.setattr(loss, "build", none)
    assert reference_speed(bench_settings(), RULES)() is None
    assert capsys.readouterr().err == "no R: transformers is not installed\n"


def test_a_row_for_each_recipe(state):
    """Of 100 s, 40 or 11 were no training."""
    finishes = [Finish("a", state(compiled=True), 6.25, 120.0, 0.015), Finish("b", state(), None, None, None)]
    first, second = finish_rows(finishes)
    assert first == ["a", "2,000", "1.5000", "60.0", "120.0", "0.50", "10.0", "1.0", "29.0", "6.2", "2%"]
    assert second == ["b", "2,000", "1.5000", "89.0", "", "", "10.0", "1.0", "", "", ""]
    assert len(first) == len(second) == len(FINISH)
