import torch

from gpt.model.attention._blocks import block_size, lay_out
from gpt.model.mask import Where, dense_mask
from gpt.model.pattern import Pattern


def compared(pattern: Pattern, length: int, where: Where | None = None):
    """The layout for a text at once, and how often each pair of query and key is seen in it: (rows, query, key)."""
    where = where or Where.contiguous(0, length, "cpu")
    layout = lay_out(
        pattern,
        where,
        where,
        apart=0,
        kept=pattern.kept(max(0, length - pattern.window)),
        bias=None,
        dtype=torch.float32,
    )
    rows, blocks = where.position.size(0), layout.bands.blocks
    index = torch.arange(1.0, length + 1).expand(rows, 1, length)[..., None]  # 0 is where padding is
    keys = layout.keys(index).view(-1, 1, layout.mask.size(-1)).expand(-1, layout.bands.block, -1).long()
    seen = torch.zeros(rows * blocks, layout.bands.block, length + 1, dtype=torch.int64)
    seen.scatter_add_(2, keys, (layout.mask[:, 0] == 0).long())
    return layout, seen.view(rows, -1, length + 1)[:, :length, 1:]


def test_a_block_is_half_a_window_and_not_too_small():
    assert [block_size(window) for window in (1, 128, 256, 257)] == [64, 64, 128, 129]


def test_a_query_is_compared_with_one_and_a_half_windows_and_what_is_kept():
    layout, _ = compared(Pattern(window=256, sinks=4, stride=512), length=2048)
    kept = 4 + 3  # sinks, and columns 511, 1023 and 1535; 2047 is in no one's past
    assert layout.mask.shape == (16, 1, 128, 3 * 128 + kept)


def test_each_visible_pair_is_there_once():
    for pattern in (Pattern(5, 2), Pattern(70, 3), Pattern(130), Pattern(20, 1, 50), Pattern(1, 0, 1), Pattern(65, 70)):
        _, seen = compared(pattern, length=333)
        where = Where.contiguous(0, 333, "cpu")
        assert torch.equal(seen, dense_mask(pattern.visible, where, where)[:, 0].long()), pattern


def test_each_visible_pair_of_padded_rows_and_documents_is_there_once():
    position = torch.stack((
        torch.arange(-150, 183).clamp(min=-1),
        torch.cat([torch.arange(n) for n in (1, 62, 2, 140, 128)]),
    ))  # fmt: skip
    document = torch.stack((torch.zeros(333), torch.arange(5).repeat_interleave(torch.tensor([1, 62, 2, 140, 128]))))
    where = Where(position, document.long())
    for pattern in (Pattern(5, 2), Pattern(70, 3), Pattern(20, 1, 50), Pattern(1, 0, 1)):
        _, seen = compared(pattern, 333, where)
        assert torch.equal(seen, dense_mask(pattern.visible, where, where)[:, 0].long()), pattern


def test_a_bias_is_there_once_for_each_head_and_block_however_many_rows_there_are():
    def bias(query, key):
        return torch.tensor([1.0, 2.0, 3.0])[:, None, None] * (key[:, None, None, :] - query[:, None, :, None])

    where = Where.contiguous(0, 150, "cpu")
    layout = lay_out(Pattern(70), where, where, 0, [], bias, torch.float32)
    assert layout.mask.shape == (1, 3 * 3, 64, 3 * 64)  # 3 blocks of 64 queries, by 3 heads
    assert layout.mask[0, 2 * 3 + 1, 5, 2 * 64 + 3].item() == 2.0 * -2  # the third block's second head
    x = torch.randn(5, 3, 150, 4)
    assert layout.queries(x).shape == (5, 3 * 3, 64, 4)
    assert layout.keys(x[:, :1]).shape == (5, 3, 3 * 64, 4), "one key head for the three, block by block"
    assert torch.equal(layout.queries(x)[4, 2 * 3 + 1, 5], x[4, 1, 2 * 64 + 5])
    assert torch.equal(layout.unfold(layout.queries(x), 5, 150), x)


def test_folding_is_undone():
    x = torch.randn(3, 2, 150, 5)
    alike, _ = compared(Pattern(70), 150)
    rows, _ = compared(Pattern(70), 150, Where(*(t.expand(3, -1) for t in Where.contiguous(0, 150, "cpu"))))
    assert alike.queries(x).shape == (3, 6, 64, 5)
    assert rows.queries(x).shape == (9, 2, 64, 5)
    assert torch.equal(alike.unfold(alike.queries(x), 3, 150), x)
    assert torch.equal(rows.unfold(rows.queries(x), 3, 150), x)
