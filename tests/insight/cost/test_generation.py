"""A long text, token by token."""

import pytest
import torch

from gpt.insight.bench.race import Rules
from gpt.insight.cost import generation as module
from gpt.insight.cost.costs import Generation
from gpt.insight.cost.generation import Text, generate_long, undisturbed, write
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

WINDOW = 8


def model(attention: dict) -> GPT:
    sizes = {"vocab_size": 11, "context": 16, "n_layer": 2, "n_head": 2, "d_model": 16}
    return GPT(GPTConfig.model_validate({**sizes, "attention": attention})).eval()


def test_each_model_writes_as_often_as_asked():
    models = [model({"name": "linear"}), model({"name": "sliding_window", "window": WINDOW})]
    told = []
    found = generate_long(models, 50, Rules(3, 0.0, 0, torch.device("cpu")), told.append)
    assert [generation.name for generation in found] == ["linear", "sliding_window"]
    assert all([len(run) for run in generation.runs] == [50, 50, 50] for generation in found)
    assert sum(told) == pytest.approx(1)
    assert all(seconds > 0 for generation in found for run in generation.runs for seconds in run)


def test_a_window_holds_no_more_after_twenty_times_as_many_tokens():
    torch.manual_seed(0)
    writer = model({"name": "sliding_window", "window": WINDOW, "sinks": 0})
    assert write(writer, 20 * WINDOW).cache == write(writer, WINDOW).cache
    full = model({"name": "sdpa"})
    assert write(full, 4 * WINDOW).cache == 4 * write(full, WINDOW).cache


def test_a_disturbed_text_is_written_again_and_the_least_disturbed_kept(monkeypatch):
    shares = iter([0.5, 0.2, 0.9, 0.0])
    monkeypatch.setattr(module, "write", lambda *_: Text(next(shares), [1.0], 0))
    assert undisturbed(None, 1, redos=2).disturbed == 0.2
    assert undisturbed(None, 1, redos=2).disturbed == 0.0


def test_the_last_tenth_to_the_first_by_hand():
    """Medians within a tenth: of 1, 1, 9 it is 1; then of 2, 2, 2, and of 4, 4, 4."""
    steady, slower, slowest = ([1.0, 1.0, 9.0, *[5.0] * 24, last, last, last] for last in (1.0, 2.0, 4.0))
    generation = Generation("any", [slowest, steady, slower], 0)
    assert (generation.first, generation.last, generation.ratio) == (1, 2, 2)
