"""Every attention, with settings small enough for short texts to cross them, at every position and number of key heads.

A test that takes `attention`, `position` or `heads` runs for each of them; one that takes `model` runs for each model
that can be built of them.
"""

from copy import deepcopy
from functools import partial

import pytest
import torch

from gpt.config import variant_class, variant_names
from gpt.model.attention._softmax import SoftmaxAttention
from gpt.model.mask import Where

SETTINGS = {
    "reference": [{}],
    "linear": [{}],
    "sdpa": [{}],
    "sliding_window": [
        {"window": 5, "sinks": 0},
        {"window": 4, "sinks": 2},
        {"window": 1, "sinks": 1},
        {"window": 3, "sinks": 1, "layers": "SL"},
        {"window": 100},
    ],
    "sparse": [
        {"window": 3, "sinks": 1, "stride": 4},
        {"window": 4, "sinks": 0, "stride": 3},
        {"window": 1, "sinks": 0, "stride": 1},
    ],
}
"""By the name of the variant; one that is not here is tested with its defaults."""

LONG_SETTINGS = {
    "sliding_window": [{"window": 5, "sinks": 2}, {"window": 70, "sinks": 3}, {"window": 130, "sinks": 0}],
    "sparse": [{"window": 6, "sinks": 2, "stride": 30}, {"window": 70, "sinks": 0, "stride": 7}],
}
"""Likewise for texts that are longer than several blocks of queries, which are at least 64."""


def variants(table):
    """Each variant's name and settings."""
    names = variant_names("gpt.model.attention")
    return [{"name": name, **settings} for name in names for settings in table.get(name, [{}])]


def pytest_make_parametrize_id(config, val, argname):
    """sliding_window-window=5-sinks=0."""
    if argname in ("attention", "long_attention") and isinstance(val, dict):
        return "-".join([val["name"], *(f"{key}={value}" for key, value in val.items() if key != "name")])
    return None


@pytest.fixture(params=variants(SETTINGS))
def attention(request):
    """A variant's name and settings."""
    return request.param


@pytest.fixture(params=variants(LONG_SETTINGS))
def long_attention(request):
    return request.param


@pytest.fixture(params=variant_names("gpt.model.position"))
def position(request):
    return request.param


@pytest.fixture(params=[4, 2, 1], ids=["mha", "gqa", "mqa"])
def heads(request):
    """Key heads for the four query heads."""
    return request.param


@pytest.fixture
def context():
    """Long enough for every text; a test file that means to go beyond has its own."""
    return 64


@pytest.fixture
def model(build, attention, position, heads, context):
    """A small model; skipped where attention and position do not go together, which has a test of its own."""
    if illegal(build, attention, position):
        pytest.skip(f"{attention['name']} has no scores to bias")
    return build(attention=attention, position=position, n_kv_head=heads, context=context)


@pytest.fixture
def long_model(build, long_attention, position, heads):
    """One layer, for texts of up to 330 tokens."""
    if illegal(build, long_attention, position):
        pytest.skip(f"{long_attention['name']} has no scores to bias")
    return build(attention=long_attention, position=position, n_kv_head=heads, context=330, n_layer=1)


def illegal(build, attention, position):
    """Whether the position biases scores, which the attention does not have."""
    biases = variant_class("gpt.model.position", position).biases
    return biases and not isinstance(build(attention=attention, position="none").attentions[0], SoftmaxAttention)


@pytest.fixture(scope="session")
def layout():
    """Where the tokens of rows are: each row its spans, n a document of n tokens, -n padding of n."""

    def layout(rows):
        position = [torch.cat([torch.arange(n) if n > 0 else torch.full((-n,), -1) for n in row]) for row in rows]
        document = [
            torch.cat([torch.full((abs(n),), sum(m > 0 for m in row[:index])) for index, n in enumerate(row)])
            for row in rows
        ]
        return Where(torch.stack(position), torch.stack(document))

    return layout


@pytest.fixture(scope="session")
def written_out():
    """The same model with the weights of every layer's attention written out: the truth of what it computes."""

    def written_out(model):
        slow = deepcopy(model)
        for attention in slow.attentions:
            attention.attend = partial(mixture, attention)
        return slow

    return written_out


def mixture(attention, query, key, value, place, memory):
    """weights · value."""
    assert memory is None
    return attention.weights(query, key, place) @ attention.repeat(value)


@pytest.fixture(scope="session")
def fed():
    """What a model gives that is fed tokens piece by piece, with a cache: its logits, one after the other."""

    def fed(model, tokens, where, sizes):
        cache, pieces = model.build_cache(tokens.size(1)), []
        for columns in torch.arange(tokens.size(1)).split(list(sizes)):
            part = where and Where(*(t[:, columns] for t in where))
            pieces.append(model(tokens[:, columns], where=part, cache=cache))
        return torch.cat(pieces, dim=1)

    return fed


@pytest.fixture(scope="session")
def assert_close():
    """Finite, and equal within 1e-5, relative to the largest, or to 0.01 where all should be 0."""

    def assert_close(ours, truth, tolerance=1e-5):
        torch.testing.assert_close(ours, truth, rtol=0, atol=tolerance * max(truth.abs().max().item(), 0.01))

    return assert_close


@pytest.fixture(scope="session")
def assert_same(assert_close):
    """One model computes the other's logits and gradients, wherever there is a token."""

    def assert_same(model, truth, tokens, where=None):
        there = torch.ones_like(tokens, dtype=torch.bool) if where is None else where.position >= 0
        ours, true = (one(tokens, where=where)[there] for one in (model, truth))
        assert_close(ours, true)
        for our_gradient, true_gradient in zip(gradients(model, ours), gradients(truth, true), strict=True):
            assert_close(our_gradient, true_gradient, tolerance=1e-4)

    return assert_same


def gradients(model, logits):
    """Of every parameter, by a loss that weighs each logit differently."""
    loss = (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum()
    return torch.autograd.grad(loss, list(model.parameters()))
