"""The chunked and the recurrent form against the weights written out; chunks of 64 tokens, blocks of 2048."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.config import UserError
from gpt.model.attention import Place
from gpt.model.attention.linear import BLOCK, CHUNK
from gpt.model.cache import Memory
from gpt.model.config import GPTConfig
from gpt.model.mask import Where

LENGTHS = [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5]


def linear(n_kv_head=4, width=8, **more):
    """An attention of 4 query heads."""
    model = GPTConfig(n_head=4, n_kv_head=n_kv_head, d_model=4 * width, attention={"name": "linear"}, **more)
    return model.attention.build(model, layer=0)


def placed(where):
    return Place(where, None, None, None)


def drawn(attention, batch, length, dtype=torch.float32):
    """Queries, keys and values."""
    heads = (attention.n_head, attention.n_kv_head, attention.n_kv_head)
    return [torch.randn(batch, n, length, attention.head_dim, dtype=dtype, requires_grad=True) for n in heads]


def where_of(rows, length):
    """One row for each list of (document, tokens); the document None is padding, and fills what is left."""
    where = Where(torch.full((len(rows), length), -1), torch.zeros(len(rows), length, dtype=torch.int64))
    for row, runs in enumerate(rows):
        start = 0
        for document, size in runs:
            end = min(start + size, length)
            if document is not None:
                where.position[row, start:end] = torch.arange(end - start)
                where.document[row, start:end] = document
            start = end
    return where


def assert_exact(attention, inputs, where):
    """`attend` against weights · values, in outputs and gradients, within 1e-5 of the largest."""
    fast = attention.attend(*inputs, placed(where), None)
    slow = attention.weights(*inputs[:2], placed(where)) @ attention.repeat(inputs[2])
    direction = torch.randn_like(slow)
    pairs = zip(
        (fast, *torch.autograd.grad((fast * direction).sum(), inputs)),
        (slow, *torch.autograd.grad((slow * direction).sum(), inputs)),
        strict=True,
    )
    for ours, truth in pairs:
        assert ours.isfinite().all()
        assert (ours - truth).abs().max() <= 1e-5 * truth.abs().max() + 1e-6
    if where is not None:
        assert (fast.transpose(1, 2)[where.position < 0] == 0).all()


def test_weights_by_hand():
    """φ(0) = 1, φ(1) = 2, φ(-ln 2) = 1/2: products of 2·1 + 1·1 and 2·2 + 1·1/2, each over their sum of 7.5."""
    attention = linear(width=2)
    query, key = (torch.zeros(1, 4, 2, 2) for _ in range(2))
    query[..., 1, 0] = 1.0
    key[..., 1, 0], key[..., 1, 1] = 1.0, -math.log(2)
    weights = attention.weights(query, key, placed(None))
    assert torch.allclose(weights[0, 0], torch.tensor([[1.0, 0.0], [0.4, 0.6]]))
    assert torch.equal(weights[0, 0], weights[0, 3])


@pytest.mark.parametrize("length", [4, 2 * CHUNK + 4])
def test_equal_products_give_the_mean_of_what_is_seen(length):
    attention = linear()
    where = where_of([[(None, length - 4), (0, 1), (1, 3)]], length)
    zeros = torch.zeros(1, 4, length, 8)
    value = torch.full((1, 4, length, 8), 100.0)
    value[0, :, -4:] = torch.tensor([7.0, 3.0, 5.0, 10.0])[:, None]
    mixed = attention.attend(zeros, zeros, value, placed(where), None)
    assert mixed[0, 0, -4:, 0].tolist() == [7, 3, 4, 6]
    assert mixed[0, 0, :-4].unique().tolist() in ([], [0.0])


def test_weights_sum_to_one_however_small_the_features():
    """elu(-30) + 1 is 0 in fp32; φ(-30) is e^-30."""
    attention = linear()
    query, key, _ = drawn(attention, 1, 70)
    for shift in (0, 30):
        weights = attention.weights(query - shift, key - shift, placed(None))
        assert (weights >= 0).all()
        assert torch.allclose(weights.sum(-1), torch.ones(1, 4, 70))


@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_equal_the_weights_written_out(length, n_kv_head):
    torch.manual_seed(0)
    attention = linear(n_kv_head)
    inputs = drawn(attention, 4, length)
    assert_exact(attention, inputs, None)
    rows = [
        [(None, length // 2), (0, length)],
        [(0, 1), (1, CHUNK - 1), (2, 1), (3, CHUNK + 1), (4, length)],
        [(None, 3), (7, max(length - 10, 1))],
        [],
    ]
    assert_exact(attention, inputs, where_of(rows, length))


@pytest.mark.parametrize("more", [1, 70])
def test_blocks_go_on_where_the_one_before_ends(more):
    torch.manual_seed(0)
    attention = linear(1, width=4)
    inputs = drawn(attention, 1, BLOCK + more)
    assert_exact(attention, inputs, None)
    assert_exact(attention, inputs, where_of([[(None, 5), (0, BLOCK - 105), (1, BLOCK)]], BLOCK + more))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_lengths_documents_and_paddings(data):
    attention = linear(data.draw(st.sampled_from([4, 2, 1])), width=4)
    length = data.draw(st.integers(1, 5 * CHUNK))
    sizes = st.integers(1, 3 * CHUNK)
    runs = st.builds(
        lambda before, documents: [(None, before), *enumerate(documents)],
        st.one_of(st.just(0), sizes),
        st.lists(sizes, max_size=6),  # what they leave of the row is padding
    )
    rows = data.draw(st.lists(runs, min_size=1, max_size=3))
    torch.manual_seed(data.draw(st.integers(0, 9)))
    inputs = drawn(attention, len(rows), length)
    where = where_of(rows, length)
    assert_exact(attention, inputs, where)

    memory, pieces, start = attention.build_memory(1), [], 0
    with torch.no_grad():
        while start < length:
            end = data.draw(st.integers(start + 1, length))
            part = Where(*(t[:, start:end] for t in where))
            pieces.append(attention.attend(*(t[:, :, start:end] for t in inputs), placed(part), memory))
            start = end
        whole = attention.attend(*inputs, placed(where), None)
    assert (torch.cat(pieces, dim=2) - whole).abs().max() <= 1e-5 * whole.abs().max()


@pytest.mark.parametrize("size", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 150])
@pytest.mark.parametrize("padded", [False, True])
def test_decoding_in_chunks_of_any_size_equals_the_uncached_forward(build, size, padded):
    model = build(attention="linear", context=200, n_kv_head=2)
    tokens = torch.randint(50, (2, 200))
    where = where_of([[(None, 71), (0, 30), (1, 200)], [(0, 130), (1, 1), (2, 200)]], 200) if padded else None
    cache = model.build_cache(200)
    with torch.no_grad():
        whole = model(tokens, where=where)
        pieces = []
        for start in range(0, 200, size):
            part = where and Where(*(t[:, start : start + size] for t in where))
            pieces.append(model(tokens[:, start : start + size], where=part, cache=cache))
    assert (torch.cat(pieces, dim=1) - whole).abs().max() <= 1e-5 * whole.abs().max()


def test_one_where_may_stand_for_all_rows(build):
    model = build(attention="linear")
    tokens = torch.randint(50, (3, 16))
    cache = model.build_cache(16)
    with torch.no_grad():
        whole = model(tokens)
        for start in range(0, 16, 4):
            here = model(tokens[:, start : start + 4], where=Where.contiguous(start, 4, "cpu"), cache=cache)
            assert torch.allclose(here, whole[:, start : start + 4], atol=1e-5)


def test_what_a_document_holds_leaves_the_others_as_they_are():
    torch.manual_seed(0)
    attention = linear()
    length = 3 * CHUNK
    where = where_of([[(0, CHUNK + 9), (1, length)]], length)
    inputs = drawn(attention, 1, length)
    before = attention.attend(*inputs, placed(where), None)
    with torch.no_grad():
        for t in inputs:
            t[:, :, : CHUNK + 9] = 1e4
    after = attention.attend(*inputs, placed(where), None)
    assert torch.equal(before[:, :, CHUNK + 9 :], after[:, :, CHUNK + 9 :])
    assert not torch.allclose(before[:, :, : CHUNK + 9], after[:, :, : CHUNK + 9])


@pytest.mark.parametrize("length", [1, CHUNK, 700])
@pytest.mark.parametrize("masked", [False, True])
def test_bf16_is_as_close_as_its_inputs_are(masked, length):
    """Inside all is fp32, so what remains is the rounding of inputs and outputs to 8 bits: 2^-8 = 0.4 %."""
    torch.manual_seed(0)
    attention = linear(2)
    inputs = drawn(attention, 1, length)
    where = where_of([[(None, length // 8), (0, length // 2), (1, length)]], length) if masked else None
    narrow = [t.detach().bfloat16().requires_grad_() for t in inputs]
    exact = attention.attend(*inputs, placed(where), None)
    with torch.autocast("cpu", torch.bfloat16):
        close = attention.attend(*narrow, placed(where), None)
    assert close.dtype == torch.bfloat16
    exact.square().sum().backward()
    close.float().square().sum().backward()
    assert (close - exact).norm() <= 0.004 * exact.norm()
    for ours, truth in zip(narrow, inputs, strict=True):
        assert (ours.grad - truth.grad).norm() <= 0.01 * truth.grad.norm() + 1e-5
    # the same numbers, in fp32 throughout: nothing is lost but the last rounding
    same = attention.attend(*(t.float() for t in narrow), placed(where), None)
    assert torch.equal(close, same.bfloat16())


def test_positions_that_bias_scores_are_refused():
    with pytest.raises(UserError, match=r"^model\.position: alibi biases scores, .*rope.*$"):
        linear(position={"name": "alibi"})


def test_a_memory_without_a_state_is_refused():
    attention = linear()
    with pytest.raises(AssertionError, match="Memory keeps no running state"):
        attention.attend(*drawn(attention, 1, 2), placed(None), Memory())


def test_says_how_it_computes():
    assert linear().describe(torch.device("cpu"), torch.float32) == f"chunks of {CHUNK} tokens and a running state"


@pytest.mark.parametrize("position", ["rope", "none"])
def test_it_does_not_grow_but_beyond_the_context_it_would_hold_more_than_training_showed(build, position):
    model = build(attention="linear", position=position)
    assert all(attention.endless for attention in model.attentions)
    assert not model.endless
