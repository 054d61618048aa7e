"""Surprise, of a model that is made by hand."""

import math

import pytest
import torch

from gpt.insight.inspect.surprise import NO_SURPRISE, STEPS, likeliest, mean, step_of, surprises

HALF, QUARTER = math.log(1 / 2), math.log(1 / 4)


def test_bits_of_each_token_given_those_before():
    """After each token: a half for id 0, a quarter for 1 and for 2."""
    logits = torch.tensor([[HALF, QUARTER, QUARTER]] * 3)
    assert surprises(logits, [2, 0, 1]) == [None, pytest.approx(1), pytest.approx(2)]


def test_logits_need_no_normalisation():
    logits = torch.tensor([[HALF, QUARTER, QUARTER], [0, 0, 0]]) + 7
    assert surprises(logits, [1, 0])[1] == pytest.approx(1)


def test_one_token_has_none():
    assert surprises(torch.zeros(1, 3), [0]) == [None]


def test_the_likeliest_first_and_never_more_than_there_are():
    logits = torch.tensor([QUARTER, HALF, QUARTER - 1e-3])
    best = likeliest(logits, 2)
    assert [i for i, _ in best] == [1, 0]
    assert best[0][1] == pytest.approx(0.5, abs=1e-3)
    assert len(likeliest(logits, 99)) == 3


def test_mean_per_token_and_per_byte_leaves_the_first_token_out():
    assert mean([None, 4.0, 8.0], [3, 3, 1]) == (6, 3)
    assert mean([None], [3]) is None


@pytest.mark.parametrize(
    "bits, step", [(None, NO_SURPRISE), (0.0, STEPS[0]), (1.0, STEPS[1]), (9.99, STEPS[3]), (1e9, STEPS[4])]
)
def test_steps(bits, step):
    assert step_of(bits) is step


def contrast(a, b):
    """Of two colours, by WCAG 2."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("step", [*STEPS, NO_SURPRISE], ids=lambda step: step.label)
def test_letters_are_read_on_their_colour(step):
    assert contrast(step.colour, step.ink) > 4.5
