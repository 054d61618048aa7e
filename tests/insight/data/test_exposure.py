import pytest

from gpt.insight.data.exposure import Exposure


def test_by_hand(looked):
    # 99 bytes and end-of-text: 11 sequences of 8 tokens, (100 - 8) // 8; 17 bytes and end-of-text: 17 targets.
    e = looked(["x" * 99], ["y" * 17]).exposure
    assert (e.context, e.batch_size, e.sequences, e.left_out) == (8, 2, 11, 100 - 88)
    assert e.epoch_steps == 6
    assert e.epochs == pytest.approx(10 * 2 / 11)
    assert e.validation_windows == 3
    assert e.evaluations == 3  # after 4, 8 and 10 steps
    assert e.evaluation_steps == pytest.approx(3 / 2 / 3)


def test_a_budget_leaves_open_how_often(looked):
    e = looked(["x" * 99], [], "budget=1min").exposure
    assert (e.steps, e.epochs, e.evaluations, e.validation_windows) == (None, None, None, 0)
    assert e.epoch_steps == 6


def test_evaluations_may_be_capped(looked):
    assert looked(["x" * 99], ["y" * 99], "eval_tokens=17").exposure.validation_windows == 2


def test_an_epoch_of_whole_batches():
    e = Exposure(
        context=8, batch_size=4, steps=3, eval_every=1, sequences=12, left_out=8, validation_windows=0
    )  # fmt: skip
    assert (e.epoch_steps, e.epochs) == (3, 1.0)
