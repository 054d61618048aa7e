"""What every attention computes, at every position and number of key heads: outputs, gradients, who sees whom.

The truth is the variant's own weights, written out; who sees whom is written a second time here.
"""

import pytest
import torch

from gpt.config import UserError, variant_class
from gpt.model.attention import Place
from gpt.model.attention._softmax import SoftmaxAttention
from gpt.model.mask import dense_mask
from gpt.model.position.alibi import Alibi, slopes

ROWS = [
    [24],
    [-7, 17],  # padding on the left
    [9, 1, 2, 12],  # documents
    [-3, 1, 13, 7],
    [-2, 4, 12, -6],  # padding on both sides
    [1, 1, 1, 1, 20],
]
LONG_ROWS = [[330], [-150, 180], [200, 1, 129], [-20, 100, 200, -10]]


@pytest.mark.parametrize("rows", [None, ROWS], ids=["plain", "padded_and_packed"])
def test_outputs_and_gradients_are_those_of_the_weights_written_out(model, rows, layout, written_out, assert_same):
    tokens = torch.randint(50, (len(ROWS), 24))
    assert_same(model, written_out(model), tokens, rows and layout(rows))


@pytest.mark.parametrize("rows", [None, LONG_ROWS], ids=["plain", "padded_and_packed"])
@pytest.mark.parametrize("heads, position", [(4, "none"), (2, "rope"), (1, "alibi")], ids=["none", "rope", "alibi"])
def test_so_they_are_where_a_text_is_longer_than_blocks(long_model, rows, layout, written_out, assert_same):
    tokens = torch.randint(50, (len(LONG_ROWS), 330))
    assert_same(long_model, written_out(long_model), tokens, rows and layout(rows))


def seen_by_hand(attention, layer, where):
    """Who sees whom in a layer, by the settings alone: (batch, query_length, key_length)."""
    query, key = where.position[:, :, None], where.position[:, None, :]
    before = (where.document[:, :, None] == where.document[:, None, :]) & (key >= 0) & (key <= query)
    pattern = attention.get("layers", "S")
    if "window" not in attention or pattern[layer % len(pattern)] == "L":
        return before
    near = query - key < attention["window"]
    sink = key < attention.get("sinks", 4)
    column = (key + 1) % attention.get("stride", 1 << 30) == 0
    return before & (near | sink | column)


@pytest.mark.parametrize("rows", [[[24]], ROWS], ids=["plain", "padded_and_packed"])
@pytest.mark.parametrize("position", ["rope"])
def test_weights_are_shares_of_what_is_seen(model, attention, rows, layout):
    where = layout(rows)
    place = Place(where, where.position, model.position.rotation(where.position), None)
    x = torch.randn(len(rows), 24, 32)
    for layer, module in enumerate(model.attentions):
        query, key, _ = module.place(x, place)
        weights = module.weights(query, key, place)
        seen = seen_by_hand(attention, layer, where)
        assert torch.equal(dense_mask(module.visible, where, where)[:, 0], seen)
        assert torch.equal(weights > 0, seen[:, None].expand_as(weights))
        assert torch.allclose(weights.sum(-1), seen.any(-1)[:, None].float(), atol=1e-6)


def test_a_token_is_seen_from_where_layers_reach_and_from_nowhere_else(model, attention, layout):
    where = layout([[24]])
    reach = torch.eye(24, dtype=torch.bool)
    for layer in range(len(model.attentions)):
        reach = reach | (seen_by_hand(attention, layer, where)[0].float() @ reach.float() > 0)
    tokens = torch.randint(50, (1, 24))
    before = model(tokens)
    for index in (0, 2, 7, 18):
        changed = tokens.clone()
        changed[0, index] = (tokens[0, index] + 1) % 50
        difference = (model(changed) - before)[0].abs().amax(dim=-1)
        assert torch.equal(difference > 1e-6 * before.abs().max(), reach[:, index])


def test_a_document_equals_itself_alone_and_knows_no_other(model, layout, assert_close):
    where, tokens = layout([[9, 1, 14], [-2, 15, 7]]), torch.randint(50, (2, 24))
    packed = model(tokens, where=where)
    spans = [(0, 0, 9), (0, 9, 10), (0, 10, 24), (1, 2, 17), (1, 17, 24)]
    for row, start, end in spans:
        assert_close(packed[row, start:end], model(tokens[row, None, start:end])[0])
        changed = (tokens + 1) % 50
        changed[row, start:end] = tokens[row, start:end]
        assert_close(model(changed, where=where)[row, start:end], packed[row, start:end], tolerance=1e-6)


@pytest.mark.parametrize("bias", [None, Alibi(slopes(4)).bias], ids=["plain", "bias"])
@pytest.mark.parametrize("rows", [[[-2, 1], [-3], [2, -1]], [[-99, 1], [-100], [90, -10]]], ids=["short", "long"])
def test_rows_that_see_nothing_give_zeros_and_finite_gradients(build, attention, heads, rows, bias, layout):
    module = build(attention=attention, position="none", n_kv_head=heads).attentions[0]
    if bias and not isinstance(module, SoftmaxAttention):
        pytest.skip("no scores to bias")
    where = layout(rows)
    query, key, value = (torch.randn(3, n, where.position.size(1), 8, requires_grad=True) for n in (4, heads, heads))
    mixed = module.attend(query, key, value, Place(where, where.position, None, bias), None)
    mixed.square().sum().backward()
    nothing = where.position < 0
    assert (mixed.transpose(1, 2)[nothing] == 0).all()
    assert torch.allclose(mixed[0, :, -1], module.repeat(value)[0, :, -1])  # the only one that it sees
    for tensor in (query, key, value):
        assert tensor.grad.isfinite().all()
        assert (tensor.grad.transpose(1, 2)[nothing] == 0).all()


FULL = [
    {"name": "sliding_window", "window": 24, "sinks": 0},
    {"name": "sliding_window", "window": 1, "sinks": 24},
    {"name": "sliding_window", "window": 1, "layers": "L"},
    {"name": "sparse", "window": 24, "sinks": 0, "stride": 50},
    {"name": "sparse", "window": 1, "sinks": 0, "stride": 1},
    {"name": "sdpa"},
]


@pytest.mark.parametrize("rows", [None, ROWS], ids=["plain", "padded_and_packed"])
@pytest.mark.parametrize("attention", FULL)
def test_what_hides_nothing_is_full_attention(model, build, position, heads, rows, layout, assert_same):
    reference = build(attention="reference", position=position, n_kv_head=heads, context=64)
    reference.load_state_dict(model.state_dict())
    assert_same(model, reference, torch.randint(50, (len(ROWS), 24)), rows and layout(rows))


@pytest.mark.parametrize("hidden", [{"window": 23, "sinks": 0}, {"window": 1, "sinks": 22}, {"window": 22, "sinks": 1}])
def test_what_hides_one_token_is_not(build, hidden):
    sizes = {"n_layer": 1, "context": 24}  # beyond it sinks would be seen from nearer
    model, tokens = build(attention={"name": "sliding_window", **hidden}, **sizes), torch.randint(50, (1, 24))
    difference = (model(tokens) - build(attention="reference", **sizes)(tokens))[0].abs().amax(dim=-1)
    assert (difference[:23] < 1e-5).all()
    assert difference[23] > 1e-3


@pytest.mark.parametrize("heads", [2, 1])
def test_fewer_key_heads_equal_repeated_ones(build, attention, heads, assert_close):
    grouped, full = (build(attention=attention, n_kv_head=n) for n in (heads, 4))
    state = grouped.state_dict()
    for key in [key for key in state if key.endswith("qkv.weight")]:
        query, keys, values = state[key].split((32, 8 * heads, 8 * heads))  # heads are 8 wide
        repeated = (
            t.unflatten(0, (heads, 8)).repeat_interleave(4 // heads, dim=0).flatten(0, 1) for t in (keys, values)
        )
        state[key] = torch.cat((query, *repeated))
    full.load_state_dict(state)
    tokens = torch.randint(50, (2, 24))
    assert_close(full(tokens), grouped(tokens))


@pytest.mark.parametrize("settings", [{}, {"n_kv_head": 2, "bias": True, "norm": "layernorm", "qk_norm": False}])
def test_state_dicts_are_the_same(build, attention, settings):
    ours, truth = (build(attention=one, **settings).state_dict() for one in (attention, "reference"))
    assert [(name, tensor.shape) for name, tensor in ours.items()] == [(name, t.shape) for name, t in truth.items()]


def test_dropout_that_is_off_is_exactly_off(build, attention):
    model = build(attention=attention, dropout=0.5)
    tokens = torch.randint(50, (1, 24))
    assert torch.equal(model(tokens), build(attention=attention, dropout=0.0)(tokens))
    model.train()
    assert not torch.allclose(model(tokens), model(tokens))


def test_a_position_that_biases_scores_needs_an_attention_that_has_scores(build, attention, position):
    biases = variant_class("gpt.model.position", position).biases
    if biases and not isinstance(build(attention=attention, position="none").attentions[0], SoftmaxAttention):
        with pytest.raises(UserError, match=rf"^model\.position: .*{position}.*{attention['name']}"):
            build(attention=attention, position=position)
    else:
        build(attention=attention, position=position)
