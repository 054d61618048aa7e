import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gpt.config import UserError, parse
from gpt.generation.sampler import (
    BLOCK,
    SamplerSettings,
    draw,
    keep_min_p,
    keep_top_p,
    next_token,
    penalize,
    uniforms,
)

HALVES = torch.tensor([0.5, 0.25, 0.125, 0.125])
EVENLY = (torch.arange(1000) + 0.5) / 1000
CPU = torch.device("cpu")


def plain(**changes) -> SamplerSettings:
    """Settings under which the softmax of the logits is drawn from as it is, but for `changes`."""
    return SamplerSettings(**{"temperature": 1.0, "top_k": 0, **changes})


def shares(logits: torch.Tensor, settings: SamplerSettings) -> list[float]:
    """How often each token is drawn at 1000 uniform numbers that are evenly spaced."""
    tokens = next_token(logits.expand(1000, -1), EVENLY, settings)
    return (torch.bincount(tokens, minlength=logits.size(-1)) / 1000).tolist()


def hugging_face(logits: torch.Tensor, settings: SamplerSettings) -> torch.Tensor:
    """The definitions of transformers' logits processors, one after the other, on one row: probabilities."""
    scores = logits.double() / settings.temperature
    if settings.top_k:
        kth = scores.sort(descending=True).values[min(settings.top_k, len(scores)) - 1]
        scores[scores < kth] = -torch.inf
    if settings.top_p < 1:
        ascending, ids = scores.sort()
        removed = ascending.softmax(0).cumsum(0) <= 1 - settings.top_p
        removed[-1] = False
        scores[ids[removed]] = -torch.inf
    if settings.min_p:
        p = scores.softmax(0)
        scores[p < settings.min_p * p.max()] = -torch.inf
    return scores.softmax(0)


# Drawing


def test_draw_inverts_the_cumulative_distribution():
    # 0.5 | 0.75 | 0.875 | 1: a number on an edge belongs to the token after it.
    numbers = torch.tensor([0.0, 0.49, 0.5, 0.74, 0.75, 0.874, 0.875, 1 - 2**-24])
    assert draw(HALVES.expand(8, -1), numbers).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_draw_never_takes_a_weight_of_zero():
    weights = torch.tensor([[0.0, 1.0, 0.0, 3.0, 0.0]]).expand(4, -1)
    assert draw(weights, torch.tensor([0.0, 0.2, 0.25, 1 - 2**-24])).tolist() == [1, 1, 3, 3]


def test_the_share_of_each_token_is_its_probability():
    assert shares(HALVES.log(), plain()) == pytest.approx([0.5, 0.25, 0.125, 0.125], abs=1e-3)


def test_temperature_squares_the_odds_at_one_half():
    expected = [16 / 22, 4 / 22, 1 / 22, 1 / 22]  # squared and renormalised
    assert shares(HALVES.log(), plain(temperature=0.5)) == pytest.approx(expected, abs=1e-3)


def test_draws_of_a_real_stream_pass_a_chi_square_test():
    stream = uniforms(seed=0, samples=[0], device=CPU)
    numbers = torch.cat([next(stream) for _ in range(8000)])
    tokens = next_token(HALVES.log().expand(8000, -1), numbers, plain())
    counts, expected = torch.bincount(tokens, minlength=4), HALVES * 8000
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    assert chi_square < 16.27  # 3 degrees of freedom, probability 0.001


# Greedy


@pytest.mark.parametrize("changes", [{}, {"top_k": 1}, {"top_p": 0.1}, {"min_p": 0.9}])
def test_temperature_zero_is_argmax(changes):
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    settings = SamplerSettings(temperature=0, **changes)
    assert next_token(logits, torch.full((5,), 0.99), settings).tolist() == logits.argmax(-1).tolist()


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 5e-324])
def test_temperature_near_zero_tends_to_argmax(temperature):
    logits = torch.tensor([[1.0, 300.0, -2e4, 299.0]])
    assert next_token(logits, torch.tensor([0.999]), plain(temperature=temperature)).item() == 1


# Top-k


@pytest.mark.parametrize("k", [1, 3, 7])
def test_top_k_keeps_exactly_k_on_ties(k):
    drawn = shares(torch.zeros(10), plain(top_k=k))
    assert sorted(drawn)[-k:] == pytest.approx([1 / k] * k, abs=2e-3)
    assert drawn.count(0) == 10 - k


@pytest.mark.parametrize("k", [0, 4, 5, 10**9])
def test_top_k_from_the_vocabulary_on_is_the_vocabulary(k):
    assert shares(HALVES.log(), plain(top_k=k)) == pytest.approx(HALVES.tolist(), abs=1e-3)


def test_top_k_renormalises():
    assert shares(HALVES.log(), plain(top_k=2)) == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-3)


# Top-p and min-p


@pytest.mark.parametrize("top_p, kept", [(0.01, 1), (0.4, 1), (0.5, 1), (0.51, 2), (0.75, 2), (0.8, 3), (0.9, 4)])
def test_top_p_keeps_the_fewest_that_reach_it(top_p, kept):
    assert (keep_top_p(HALVES[None], top_p) > 0).tolist() == [[index < kept for index in range(4)]]


@pytest.mark.parametrize("min_p, kept", [(0.01, 4), (0.25, 4), (0.26, 2), (0.5, 2), (0.51, 1), (1.0, 1)])
def test_min_p_is_a_share_of_the_largest(min_p, kept):
    assert (keep_min_p(HALVES[None], min_p) > 0).sum().item() == kept


def test_top_p_sees_what_top_k_left():
    # After top-k 2 the first has 2/3, which reaches 0.6; of the whole it has 1/2, which does not.
    assert shares(HALVES.log(), plain(top_k=2, top_p=0.6)) == [1, 0, 0, 0]
    assert shares(HALVES.log(), plain(top_p=0.6)) == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-3)


def test_filters_see_the_temperature():
    # At temperature 1/2 the first has 16/22 = 0.73.
    assert shares(HALVES.log(), plain(temperature=0.5, top_p=0.7)) == [1, 0, 0, 0]


def test_order_of_the_vocabulary_does_not_matter():
    shuffled = HALVES[[2, 0, 3, 1]].log()
    assert shares(shuffled, plain(top_p=0.7)) == pytest.approx([0, 2 / 3, 0, 1 / 3], abs=1e-3)
    assert shares(shuffled, plain(min_p=0.4)) == pytest.approx([0, 2 / 3, 0, 1 / 3], abs=1e-3)


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 1000),
    temperature=st.floats(0.2, 3),
    top_k=st.integers(0, 15),
    top_p=st.floats(0.05, 1),
    min_p=st.floats(0, 1),
)
def test_probabilities_are_those_of_hugging_face(seed, temperature, top_k, top_p, min_p):
    logits = torch.randn(12, generator=torch.Generator().manual_seed(seed))
    chosen = plain(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    # 1000 numbers give each share to within 1/1000 on either side.
    assert shares(logits, chosen) == pytest.approx(hugging_face(logits, chosen).tolist(), abs=2.1e-3)


# Repetition penalty


def test_penalty_divides_positive_and_multiplies_negative_logits():
    logits = torch.tensor([[4.0, -4.0, 0.0, 4.0]])
    seen = torch.tensor([[True, True, True, False]])
    assert penalize(logits, seen, 2.0).tolist() == [[2.0, -8.0, 0.0, 4.0]]


def test_penalty_holds_for_the_likeliest_token_too():
    logits, seen = torch.tensor([[3.0, 2.0]]), torch.tensor([[True, False]])
    settings = SamplerSettings(temperature=0, repetition_penalty=2.0)
    assert next_token(logits, torch.zeros(1), settings, seen).item() == 1
    assert next_token(logits, torch.zeros(1), settings).item() == 0


# Uniform numbers


def test_a_row_s_numbers_depend_on_seed_and_index_only():
    def numbers(seed, samples, steps=BLOCK + 3):
        stream = uniforms(seed, samples, CPU)
        return torch.stack([next(stream) for _ in range(steps)], dim=1)

    alone, beside = numbers(7, [2]), numbers(7, [0, 1, 2, 2])
    assert torch.equal(alone[0], beside[2])
    assert torch.equal(alone[0], beside[3])
    assert not torch.equal(beside[0], beside[1])
    assert not torch.equal(alone, numbers(8, [2]))
    expected = np.random.default_rng([7, 2]).random(BLOCK + 3, dtype=np.float32)
    assert alone[0].tolist() == expected.tolist()  # without a seam between blocks


def test_half_precision_logits_are_drawn_from_in_full_precision():
    # 2049 equal logits: in bf16 the running sum would stop at a few hundred of them.
    tokens = next_token(torch.zeros(2, 2049, dtype=torch.bfloat16), torch.tensor([0.5, 0.9999]), plain())
    assert tokens.tolist() == [1024, 2048]


def test_runs_on_the_meta_device_so_nothing_is_read_back():
    logits, seen = torch.zeros(2, 9, device="meta"), torch.zeros(2, 9, dtype=torch.bool, device="meta")
    chosen = SamplerSettings(top_k=3, top_p=0.9, min_p=0.1, repetition_penalty=1.2)
    assert next_token(logits, torch.zeros(2, device="meta"), chosen, seen).shape == (2,)


# Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": -1.0},
        {"seed": -1},
        {"top-k": 3},
    ],
)
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))) as error:
        parse(SamplerSettings, wrong)
    assert "\n" not in str(error.value)


def test_whole_numbers_are_taken_for_floats():
    assert parse(SamplerSettings, {"temperature": 1, "top_p": 1, "repetition_penalty": 2}).temperature == 1.0
