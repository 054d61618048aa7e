"""Numbers of heads, on weights that are checked by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.insight.inspect.heads import Head, each, measure, remarkable


def diagonal(n):
    return torch.eye(n)


def test_uniform_over_n_tokens_is_log2_n_bits_and_1_in_n_on_the_first():
    heads = measure([torch.full((1, 8, 8), 1 / 8)])
    assert heads.entropy.tolist() == [[pytest.approx(3)]]
    assert heads.first.tolist() == [[pytest.approx(1 / 8)]]


def test_all_on_itself_is_nothing_looked_back_and_0_bits():
    heads = measure([diagonal(4)[None]])
    assert (heads.entropy.item(), heads.first.item(), heads.back.item()) == (0, 0.25, 0)


def test_all_on_the_token_before():
    """Of 4 tokens the first sees itself, each other one the one before it: 3/4 of a token back on average."""
    weights = torch.tensor([[1.0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    heads = measure([weights[None]])
    assert (heads.entropy.item(), heads.first.item(), heads.back.item()) == (0, 0.5, 0.75)


def test_layers_and_heads_keep_their_places():
    sink = torch.zeros(2, 2)
    sink[:, 0] = 1
    heads = measure([torch.stack([diagonal(2), sink]), torch.stack([sink, diagonal(2)])])
    assert heads.first.tolist() == [[0.5, 1], [1, 0.5]]
    assert each(heads)[1] == Head(layer=1, head=2, entropy=0, first=1, back=0.5)
    assert [(h.layer, h.head) for h in each(heads)] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_a_row_that_sees_nothing_gives_no_nan():
    heads = measure([torch.zeros(1, 3, 3)])
    assert [number.item() for number in heads] == [0, 0, 0]


@settings(deadline=None)
@given(n=st.integers(1, 12), seed=st.integers(0, 99))
def test_entropy_is_between_0_and_log2_n(n, seed):
    scores = torch.randn(2, n, n, generator=torch.Generator().manual_seed(seed)) * 5
    heads = measure([scores.softmax(-1)])
    assert (heads.entropy >= -1e-6).all()
    assert (heads.entropy <= torch.log2(torch.tensor(float(n))) + 1e-5).all()


def test_the_remarkable_ones():
    a, b, c = Head(1, 1, 0.1, 0.9, 2.0), Head(1, 2, 2.0, 0.1, 0.5), Head(2, 1, 1.0, 0.5, 1.0)
    assert remarkable([a, b, c], 1) == {a: "sharpest, most on the first token, farthest back", b: "broadest, nearest"}


def test_where_all_heads_are_alike_none_is_the_most_of_anything():
    """As over a prompt of one token, whose weights are all 1."""
    heads = each(measure([torch.ones(3, 1, 1), torch.ones(3, 1, 1)]))
    assert {f"{head.entropy:.2f}" for head in heads} == {"0.00"}
    assert set(remarkable(heads, 1).values()) == {""}
