"""What all variants share: the projections by hand, with all weights 0 and biases that tell what goes where."""

import pytest
import torch
from torch import nn

from gpt.config import variant_names
from gpt.model.attention import Place
from gpt.model.attention._softmax import SoftmaxAttention
from gpt.model.config import GPTConfig
from gpt.model.mask import Where

ATTENTIONS = variant_names("gpt.model.attention")
ONE_TOKEN = Place(None, torch.zeros(1, 1, dtype=torch.int64), None, None)


def attention(bias, name="reference", **settings):
    """Two query heads of width 2, of which the whole projection is `bias`."""
    sizes = {"n_head": 2, "d_model": 4, "bias": True, "qk_norm": False}
    built = GPTConfig(**{**sizes, **settings}, attention={"name": name})
    built = built.attention.build(built, layer=0).eval()
    nn.init.zeros_(built.qkv.weight)
    built.qkv.bias.data = torch.tensor(bias)
    return built


def test_the_projection_is_query_heads_then_key_heads_then_value_heads():
    built = attention([0.0, 1, 2, 3, 4, 5, 6, 7], n_kv_head=1)
    query, key, value = built.project(torch.zeros(1, 1, 4))
    assert query[0, :, 0].tolist() == [[0, 1], [2, 3]]
    assert key[0, :, 0].tolist() == [[4, 5]]
    assert value[0, :, 0].tolist() == [[6, 7]]


def test_queries_and_keys_have_a_norm_each_and_values_none():
    built = attention([5.0] * 12, qk_norm=True, norm_eps=75.0)  # rms of (5, 5): sqrt(25 + 75) = 10
    nn.init.constant_(built.query_norm.weight, 4.0)
    nn.init.constant_(built.key_norm.weight, 6.0)
    query, key, value = built.project(torch.zeros(1, 1, 4))
    assert [t.unique().tolist() for t in (query, key, value)] == [[2.0], [3.0], [5.0]]


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("values, heads, mixed", [([6.0, 7], 1, [6, 7, 6, 7]), ([5.0, 6, 7, 8], 2, [5, 6, 7, 8])])
def test_heads_are_joined_one_after_the_other(name, values, heads, mixed):
    built = attention([0.0] * (4 + 2 * heads) + values, name, n_kv_head=heads)
    built.output.weight.data, built.output.bias.data = torch.eye(4), torch.zeros(4)
    assert built(torch.zeros(1, 1, 4), ONE_TOKEN).flatten().tolist() == mixed


@pytest.mark.parametrize("length", [1, 100])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_softmax_weights_have_dropout(name, length):
    built = attention([0.0] * 12, name, dropout=0.5)
    if not isinstance(built, SoftmaxAttention):
        pytest.skip("forms no weights that could be dropped")
    place = Place(None, torch.arange(length)[None], None, None)
    query, ones = torch.zeros(50, 2, length, 2), torch.ones(50, 2, length, 2)
    torch.manual_seed(0)
    dropped = built.train().attend(query, query, ones, place, None)
    # the first token's one weight 1 is dropped, or divided by 1 - 0.5; on the average nothing changes
    assert set(dropped[:, :, 0].flatten().tolist()) == {0.0, 2.0}
    assert dropped[:, :, -1].std() > 0.1
    assert dropped.mean().item() == pytest.approx(1, abs=0.1 if length > 1 else 0.3)
    assert torch.allclose(built.eval().attend(query, query, ones, place, None), ones)


@pytest.mark.parametrize("position, relative", [("rope", True), ("alibi", True), ("none", True), ("learned", False)])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_relative_positions_see_distances_alone(build, name, position, relative):
    model = build(attention=name, position="none", context=32)  # a window of 8 tokens, a quarter, shows all 6
    if position != "none" and not isinstance(model.attentions[0], SoftmaxAttention):
        pytest.skip("has no scores of which distances could be told")
    model = build(attention=name, position=position, context=32)
    tokens = torch.randint(50, (1, 6))
    here, there = (model(tokens, where=Where.contiguous(start, 6, "cpu")) for start in (0, 7))
    assert torch.allclose(here, there, atol=1e-4) is relative


def test_a_place_is_what_it_tells_not_what_was_made_of_it():
    position = torch.zeros(1, 3, dtype=torch.int64)
    place, other = Place(None, position, None, None), Place(None, position, None, None)
    assert place.located is place.located, "one for all layers"
    assert place == other
    assert "document" not in repr(place)
