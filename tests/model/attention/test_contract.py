"""What holds for every attention, position and number of key/value heads, found by walking the folders."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.config import variant_names
from gpt.model.attention import Place
from gpt.model.mask import Where
from gpt.model.position.alibi import Alibi, slopes

ATTENTIONS = variant_names("gpt.model.attention")
POSITIONS = variant_names("gpt.model.position")
EXACT = [name for name in ATTENTIONS if name != "reference"]
HEADS = [4, 2, 1]
CASES = list(product(ATTENTIONS, POSITIONS, HEADS))


def close(a, b):
    """Equal within 1e-5, relative to the largest."""
    return (a - b).abs().max() <= 1e-5 * b.abs().max()


def padded(rows, length):
    """Left-padded (len(rows), length) tokens, and where they are."""
    tokens = torch.zeros(len(rows), length, dtype=torch.int64)
    position = torch.full((len(rows), length), -1)
    for index, row in enumerate(rows):
        tokens[index, length - len(row) :] = torch.tensor(row)
        position[index, length - len(row) :] = torch.arange(len(row))
    return tokens, Where(position, torch.zeros_like(position))


def grads(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize("name, position, heads", list(product(EXACT, POSITIONS, HEADS)))
@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_reference_in_outputs_and_gradients(build, name, position, heads, masked):
    model = build(attention=name, position=position, n_kv_head=heads)
    reference = build(attention="reference", position=position, n_kv_head=heads)
    reference.load_state_dict(model.state_dict())
    tokens = torch.randint(50, (3, 12))
    where = None
    if masked:  # padding on the left, and two documents in the last row
        where = Where(torch.arange(12).repeat(3, 1), torch.zeros(3, 12, dtype=torch.int64))
        where.position[0, :5] = -1
        where.position[0, 5:] = torch.arange(7)
        where.position[2, 8:] = torch.arange(4)
        where.document[2, 8:] = 1
    there = torch.ones(3, 12, dtype=torch.bool) if where is None else where.position >= 0
    fast, slow = model(tokens, where=where), reference(tokens, where=where)
    assert close(fast[there], slow[there])
    for ours, truth in zip(
        grads(model, fast[there].square().sum()), grads(reference, slow[there].square().sum()), strict=True
    ):
        assert ours.isfinite().all()
        assert (ours - truth).abs().max() <= 1e-4 * truth.abs().max() + 1e-6


@pytest.mark.parametrize("name, position, heads", CASES)
def test_a_token_does_not_see_what_follows(build, name, position, heads):
    model = build(attention=name, position=position, n_kv_head=heads)
    tokens = torch.randint(50, (1, 12))
    changed = tokens.clone()
    changed[0, 7] = (tokens[0, 7] + 1) % 50
    before, after = model(tokens), model(changed)
    assert torch.equal(before[0, :7], after[0, :7])
    assert not torch.allclose(before[0, 7:], after[0, 7:])
    assert all((before[0, t] - after[0, t]).abs().max() > 1e-6 for t in range(7, 12)), "later tokens must see it"


@pytest.mark.parametrize("name, position, heads", CASES)
def test_cached_equals_uncached_at_every_step(build, name, position, heads):
    model = build(attention=name, position=position, n_kv_head=heads)
    tokens = torch.randint(50, (2, 16))
    with torch.no_grad():
        whole = model(tokens)
        cache = model.build_cache(16)
        for t in range(16):
            assert close(model(tokens[:, t : t + 1], cache=cache)[:, 0], whole[:, t])


@pytest.mark.parametrize("name, position", list(product(ATTENTIONS, POSITIONS)))
@pytest.mark.parametrize("size", range(1, 17))
def test_a_prompt_prefilled_in_chunks_of_any_size(build, name, position, size):
    model = build(attention=name, position=position, n_kv_head=2)
    tokens = torch.randint(50, (2, 16))
    cache = model.build_cache(16)
    with torch.no_grad():
        pieces = [model(chunk, cache=cache) for chunk in tokens.split(size, dim=1)]
        assert close(torch.cat(pieces, dim=1), model(tokens))


@pytest.mark.parametrize("name, position, heads", CASES)
def test_a_left_padded_row_equals_its_solo_run(build, name, position, heads):
    model = build(attention=name, position=position, n_kv_head=heads)
    rows = [[3], [1, 4, 1, 5, 9, 2, 6], [2, 7, 1]]
    tokens, where = padded(rows, 7)
    cache = model.build_cache(12)
    with torch.no_grad():
        logits = model(tokens, where=where, cache=cache)
        for step in range(5):
            for index, row in enumerate(rows):
                assert close(logits[index, -1], model(torch.tensor([row]))[0, -1]), (step, index)
            following = torch.randint(50, (3, 1))
            rows = [[*row, token] for row, token in zip(rows, following.flatten().tolist(), strict=True)]
            where = Where(where.position[:, -1:] + 1, where.document[:, -1:])
            logits = model(following, where=where, cache=cache)


@pytest.mark.parametrize("name, position, heads", CASES)
def test_a_document_does_not_see_the_one_before(build, name, position, heads):
    model = build(attention=name, position=position, n_kv_head=heads)
    tokens = torch.randint(50, (1, 10))
    where = Where(torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4, 5]]), torch.tensor([[0] * 4 + [1] * 6]))
    packed = model(tokens, where=where)
    assert close(packed[0, 4:], model(tokens[:, 4:])[0])
    changed = tokens.clone()
    changed[0, :4] = (tokens[0, :4] + 1) % 50
    assert torch.equal(model(changed, where=where)[0, 4:], packed[0, 4:])


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("bias", [None, Alibi(slopes(4)).bias], ids=["plain", "bias"])
def test_rows_that_see_nothing_give_zeros_and_finite_gradients(build, name, bias):
    attention = build(attention=name).blocks[0].attention
    where = Where(torch.tensor([[-1, -1, 0]]), torch.zeros(1, 3, dtype=torch.int64))
    query, key, value = (torch.randn(1, 4, 3, 8, requires_grad=True) for _ in range(3))
    mixed = attention.attend(query, key, value, Place(where, where.position, None, bias), None)
    mixed.sum().backward()
    assert (mixed[0, :, :2] == 0).all()
    assert torch.allclose(mixed[0, :, 2], value[0, :, 2])
    assert all(t.grad.isfinite().all() for t in (query, key, value))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_fewer_key_heads_equal_repeated_ones(build, name):
    grouped = build(attention=name, n_kv_head=2)
    full = build(attention=name, n_kv_head=4)
    state = grouped.state_dict()
    for key in [key for key in state if key.endswith("qkv.weight")]:
        query, keys, values = state[key].split((32, 16, 16))  # 4, 2 and 2 heads of 8
        repeated = (t.unflatten(0, (2, 8)).repeat_interleave(2, dim=0).flatten(0, 1) for t in (keys, values))
        state[key] = torch.cat((query, *repeated))
    full.load_state_dict(state)
    tokens = torch.randint(50, (2, 9))
    assert close(full(tokens), grouped(tokens))


@pytest.mark.parametrize("first, second", list(pairwise(ATTENTIONS)))
def test_state_dicts_are_the_same(build, first, second):
    shapes = [{k: v.shape for k, v in build(attention=name).state_dict().items()} for name in (first, second)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", ATTENTIONS)
def test_dropout_that_is_off_is_exactly_off(build, name):
    model = build(attention=name, dropout=0.5)
    tokens = torch.randint(50, (1, 12))
    assert torch.equal(model(tokens), build(attention=name, dropout=0.0)(tokens))
    model.train()
    assert not torch.allclose(model(tokens), model(tokens))


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_any_padding_and_any_chunks(data):
    """hypothesis draws the variant, the paddings and the chunks; the truth is the row alone, without a cache."""
    import gpt

    torch.manual_seed(0)
    config = gpt.GPTConfig(
        vocab_size=20, context=16, n_layer=1, n_head=2, d_model=8, init_std=0.3,
        n_kv_head=data.draw(st.sampled_from([1, 2])),
        attention={"name": data.draw(st.sampled_from(ATTENTIONS))},
        position={"name": data.draw(st.sampled_from(POSITIONS))},
    )  # fmt: skip
    model = gpt.GPT(config).eval()
    rows = data.draw(st.lists(st.lists(st.integers(0, 19), min_size=1, max_size=16), min_size=1, max_size=3))
    length = max(map(len, rows))
    tokens, where = padded(rows, length)
    cache = model.build_cache(length)
    pieces, start = [], 0
    with torch.no_grad():
        while start < length:
            end = data.draw(st.integers(start + 1, length))
            part = Where(*(t[:, start:end] for t in where))
            pieces.append(model(tokens[:, start:end], where=part, cache=cache))
            start = end
        logits = torch.cat(pieces, dim=1)
        for index, row in enumerate(rows):
            assert close(logits[index, length - len(row) :], model(torch.tensor([row]))[0])
