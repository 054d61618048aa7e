import pytest
import torch
from torch.nn import functional as F

from gpt.model.attention import Place
from gpt.model.attention._blocks import lay_out
from gpt.model.attention._pattern import PatternAttention
from gpt.model.attention._segments import Segments
from gpt.model.config import GPTConfig
from gpt.model.mask import Where, dense_mask
from gpt.model.pattern import Pattern

PATTERNS = [Pattern(256, 4, 256), Pattern(70, 3, 33), Pattern(1, 0, 1000), Pattern(2400, 2), Pattern(600)]


def test_a_segment_is_of_whole_blocks_and_no_shorter_than_its_past():
    cut = [Segments.cut(Pattern(window), 9000)[:2] for window in (256, 300, 1, 5000)]
    assert cut == [(2048, 256), (14 * 150, 300), (2048, 0), (2 * 2500, 2 * 2500)]


def test_what_is_kept_is_apart_or_within():
    segments = Segments.cut(Pattern(256, sinks=2, stride=500), 5000)
    assert segments.kept == [0, 1, 499, 999, 1499, 1999, 2499, 2999, 3499, 3999, 4499, 4999]
    assert [segments.oldest(i) for i in range(3)] == [0, 1792, 3840]
    assert [segments.apart(i) for i in range(3)] == [0, 5, 9]  # before 0, 1792, 3840
    assert [segments.within(i) for i in range(3)] == [
        [0, 1, 499, 999, 1499],  # the last band begins at 2048 - 128 - 256 = 1664
        [1999, 2499, 2999, 3499],  # at 3712
        [3999, 4499, 4999],  # at 5760
    ]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_visible_pair_is_there_once(pattern):
    length = 4999
    where = Where.contiguous(0, length, "cpu")
    segments = Segments.cut(pattern, length)
    index = torch.arange(1.0, length + 1)[None, None, :, None]
    position, first = where.position[:, None, :, None], 0
    kept = segments.kept_index(position.device)
    for i, (keys, at) in enumerate(zip(segments.keys(index, kept), segments.keys(position, kept), strict=True)):
        query = Where(*(t[:, first : first + segments.size] for t in where))
        key = Where(at[:, 0, :, 0], torch.zeros_like(at[:, 0, :, 0]))
        layout = lay_out(pattern, query, key, segments.apart(i), segments.within(i), None, torch.float32)
        compared = layout.keys(keys).view(-1, 1, layout.mask.size(-1)).expand(-1, layout.bands.block, -1).long()
        seen = torch.zeros(layout.bands.blocks, layout.bands.block, length + 1, dtype=torch.int64)
        seen.scatter_add_(2, compared, (layout.mask[:, 0] == 0).long())
        seen = seen.flatten(0, 1)[: query.position.size(1), 1:]
        assert torch.equal(seen, dense_mask(pattern.visible, query, where)[0, 0].long())
        first += segments.size
    assert first >= length


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("pattern", [*PATTERNS, Pattern(100, 1, 300)])
def test_outputs_and_gradients_are_those_of_one_mask_over_all(pattern, biased):
    """Of two rows, with two query heads for one of keys."""
    sizes = {"vocab_size": 8, "context": 4096, "n_layer": 1, "n_head": 2, "n_kv_head": 1, "d_model": 8}
    attention = PatternAttention(GPTConfig(**sizes), pattern)

    def bias(query, key):
        slopes = torch.tensor([0.5, 0.01], dtype=torch.float64)[:, None, None]
        return -(query[:, None, :, None] - key[:, None, None, :]).abs() * slopes

    where = Where.contiguous(0, 2500, "cpu")
    inputs = [torch.randn(2, heads, 2500, 4, dtype=torch.float64, requires_grad=True) for heads in (2, 1, 1)]
    mixed = attention.attend(*inputs, Place(None, where.position, None, bias if biased else None), None)
    mask = dense_mask(pattern.visible, where, where)
    if biased:
        mask = bias(where.position, where.position).masked_fill(~mask, float("-inf"))
    truth = F.scaled_dot_product_attention(*inputs, attn_mask=mask, enable_gqa=True)
    torch.testing.assert_close(mixed, truth)
    upstream = torch.randn_like(mixed)
    torch.testing.assert_close(
        torch.autograd.grad(mixed, inputs, upstream), torch.autograd.grad(truth, inputs, upstream)
    )
