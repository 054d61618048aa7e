import pytest
import torch

from gpt.config import UserError
from gpt.model.attention import _pattern, _softmax
from gpt.model.attention._pattern import PatternAttention
from gpt.model.cache.rolling import RollingMemory
from gpt.model.config import GPTConfig
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


def test_it_says_how_it_is_computed(build):
    attention = build(attention=window(window=256)).attentions[0]
    told = attention.describe(torch.device("cpu"), torch.float32)
    assert told == "blocks of 128 queries by PyTorch's flash kernel"


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
