import math

import pytest
import torch

from gpt.config import UserError
from gpt.model.attention import _flex, _pattern, _softmax
from gpt.model.attention._pattern import PatternAttention
from gpt.model.cache.rolling import RollingMemory
from gpt.model.config import GPTConfig
from gpt.model.mask import Where
from gpt.model.pattern import Pattern


def window(**settings):
    return {"name": "sliding_window", **settings}


@pytest.mark.parametrize(
    "layers, n_layer, built",
    [("S", 3, "SSS"), ("L", 2, "LL"), ("SSSL", 8, "SSSLSSSL"), ("SSSL", 6, "SSSLSL"), ("LS", 3, "LSL"), ("SL", 1, "L")],
)
def test_layers_are_tiled_and_the_last_sees_all_where_any_does(build, layers, n_layer, built):
    model = build(attention=window(layers=layers), n_layer=n_layer)
    assert "".join("S" if isinstance(a, PatternAttention) else "L" for a in model.attentions) == built
    assert model.endless is ("L" not in layers)


def test_unless_told_otherwise_a_window_is_a_quarter_of_the_context(build):
    assert build(attention=window()).attentions[0].pattern == Pattern(4, sinks=4)
    assert build(attention=window(window=7, sinks=0)).attentions[0].pattern == Pattern(7)
    assert build(attention=window(), context=2).attentions[0].pattern == Pattern(1, sinks=4)


def test_positions_that_are_not_relative_are_not_endless(build):
    assert not build(attention=window(), position="learned").endless
    assert build(attention=window(), position="alibi").endless


def test_a_window_that_is_longer_than_the_context_is_not_endless(build):
    """It would look farther away than training showed."""
    assert build(attention=window(window=16), context=16).endless
    assert not build(attention=window(window=17), context=16).endless


def test_from_beyond_the_context_a_sink_is_as_far_away_as_from_its_end(build):
    model = build(attention=window(window=5, sinks=2), context=12, n_layer=1)
    attention, rotation = model.attentions[0], model.position.rotation
    place = model._place(torch.zeros(1, 40, dtype=torch.int64), None, None)
    x = torch.randn(1, 40, 32)
    query, key, _ = attention.project(x)
    weights = attention.weights(*attention.place(x, place)[:2], place)
    for p in (3, 11, 12, 13, 39):
        # (position of the query, position of the key) by which each key is seen
        seen = [(min(p, 11), s) if s < 2 else (p, s) for s in range(p + 1) if s < 2 or p - s < 5]
        turned = [
            rotation(torch.tensor([[a]]))(query[:, :, [p]]) * rotation(torch.tensor([[s]]))(key[:, :, [s]])
            for a, s in seen
        ]
        scores = torch.cat(turned, dim=2).sum(dim=3)[0]  # (heads, keys)
        own = weights[0, :, p][:, [s for _, s in seen]]
        assert torch.allclose(own, (scores / math.sqrt(8)).softmax(dim=1), atol=1e-6)


@pytest.mark.parametrize("length", [60, 300], ids=["one call", "blocks"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_beyond_the_context_is_as_its_weights_written_out(build, written_out, assert_same, length, packed):
    model = build(attention=window(window=20, sinks=3), context=25, n_kv_head=2)
    tokens = torch.randint(1, 50, (2, length))
    tokens[0, length // 3] = 0
    assert_same(model, written_out(model), tokens, Where.packed(tokens, separator=0) if packed else None)


def test_each_layer_remembers_as_it_attends(build):
    memories = build(attention=window(layers="SL")).build_cache(10).memories
    assert [isinstance(memory, RollingMemory) for memory in memories] == [True, False]


@pytest.mark.parametrize("wrong", [{"layers": "SXL"}, {"layers": ""}, {"window": 0}, {"sinks": -1}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(UserError, match=f"model.attention.{next(iter(wrong))}"):
        GPTConfig(attention=window(**wrong))


def test_it_is_reached_through_all_layers_from_so_far_and_no_farther(build):
    model = build(attention=window(window=3, sinks=0), n_layer=2)
    tokens = torch.randint(50, (1, 12))
    changed = tokens.clone()
    changed[0, 2] = (tokens[0, 2] + 1) % 50
    differ = (model(tokens) - model(changed)).abs().amax(dim=(0, 2)) > 1e-6
    assert differ.nonzero().flatten().tolist() == [2, 3, 4, 5, 6]  # two layers of two tokens back


BLOCKS = "blocks of 128 queries by PyTorch's flash kernel"
CASES = [
    # settings, packed, told where there is no FlexAttention, and where there is
    ({}, False, BLOCKS, "FlexAttention"),
    ({}, True, BLOCKS, "FlexAttention"),
    ({"position": "alibi"}, False, BLOCKS, BLOCKS),
    ({"d_model": 32}, True, BLOCKS, BLOCKS),  # heads 8 wide
    ({"context": 256}, False, "PyTorch's flash kernel", "PyTorch's flash kernel"),
    ({"context": 256}, True, BLOCKS, "FlexAttention"),
    ({"context": 256, "position": "alibi"}, False, BLOCKS, BLOCKS),
    ({"context": 128}, True, "PyTorch's flash kernel", "PyTorch's flash kernel"),
]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("settings, packed, elsewhere, here", CASES)
def test_it_says_what_runs(build, monkeypatch, settings, packed, elsewhere, here):
    model = build(**{"attention": window(window=256), "context": 300, "d_model": 64, "n_layer": 1, **settings})
    tokens, ran = torch.zeros(1, model.config.context, dtype=torch.int64), []
    for module, name in ((_flex, "fused"), (PatternAttention, "in_blocks")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, name=name, real=real: ran.append(name) or real(*args))
    names = {"fused": "FlexAttention", "in_blocks": BLOCKS}
    for there, told in ((False, elsewhere), (True, here)):
        monkeypatch.setattr(_flex, "is_there", lambda device, there=there: there)
        assert model.attentions[0].describe(torch.device("cpu"), torch.float32, packed) == told
        ran.clear()
        with torch.no_grad():
            model(tokens, where=Where.packed(tokens + 1, separator=0) if packed else None)
        assert [names[name] for name in ran] == ([told] if told in names.values() else [])


@pytest.mark.parametrize("dropout, here", [(0.0, "FlexAttention"), (0.5, BLOCKS)])
def test_dropout_is_blocks_in_training(build, monkeypatch, dropout, here):
    monkeypatch.setattr(_flex, "is_there", lambda device: True)
    attention = build(attention=window(window=256), context=300, d_model=64, dropout=dropout).attentions[0]
    assert attention.describe(torch.device("cpu"), torch.float32) == "FlexAttention"
    assert attention.train().describe(torch.device("cpu"), torch.float32).startswith(here[:6])


@pytest.mark.parametrize("length, laid_out", [(12, 0), (200, 1), (3000, 2)], ids=["short", "blocks", "segments"])
def test_layers_share_their_masks(build, monkeypatch, length, laid_out):
    """One mask for all windows; what sees all needs none. A layout of blocks, or one for each segment of 2,048."""
    made, masks = {"dense_mask": 0, "lay_out": 0}, set()

    def counted(module, name):
        real = getattr(module, name)

        def count(*args):
            made[name] += 1
            return real(*args)

        monkeypatch.setattr(module, name, count)

    counted(_softmax, "dense_mask")
    counted(_pattern, "lay_out")
    fused = _pattern.PatternAttention.fused

    def spy(self, query, key, value, mask, causal=False):
        assert mask is None or mask.dtype == query.dtype == value.dtype, "PyTorch would make one of it in each layer"
        masks.add(id(mask))
        return fused(self, query, key, value, mask, causal)

    monkeypatch.setattr(_pattern.PatternAttention, "fused", spy)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        build(attention=window(layers="SSSL"), n_layer=8)(torch.zeros(1, length, dtype=torch.int64))
    assert made == {"dense_mask": not laid_out, "lay_out": laid_out}
    assert len(masks) == max(1, laid_out)
