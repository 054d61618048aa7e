"""A pattern computed in blocks of queries, so that time and memory are O(length · window) on any device.

A block is compared with its *band*, its own keys and those of a window before them, and with the kept keys of its
document from before the band. Of a block's queries only those of the first one's document can have such: the kept keys
of that document are gathered from where it begins. All blocks go through one call of masked attention; a long plain
text is first cut into segments, with a call for each.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.model.mask import Where, additive, dense_mask
from gpt.model.pattern import Pattern

Bias = Callable[[Tensor, Tensor], Tensor]


def block_size(window: int) -> int:
    """Queries of a block: half a window, so that a query is compared with 1.5 windows; 64 at least, for one product."""
    return max(64, -(-window // 2))


class Bands(NamedTuple):
    """How queries and keys that are in order are cut into blocks."""

    block: int
    """Queries of a block."""
    reach: int
    """Blocks of a band before its own."""
    past: int
    """Keys before the first query."""
    blocks: int
    """Blocks of queries."""

    @classmethod
    def cut(cls, window: int, past: int, length: int) -> "Bands":
        """Blocks for `length` queries."""
        block = block_size(window)
        return cls(block, -(-(window - 1) // block), past, -(-length // block))

    def queries(self, x: Tensor, nothing: float = 0.0) -> Tensor:
        """(batch, heads, length, width) -> (batch, heads, blocks, block, width)."""
        padding = self.blocks * self.block - x.size(2)
        return F.pad(x, (0, 0, 0, padding), value=nothing).unflatten(2, (self.blocks, self.block))

    def keys(self, x: Tensor, nothing: float = 0.0) -> Tensor:
        """(batch, heads, past + length, width) -> (batch, heads, blocks, (reach + 1) · block, width)."""
        before = self.reach * self.block - self.past  # negative: older than any band
        after = (self.reach + self.blocks) * self.block - before - x.size(2)
        pieces = F.pad(x, (0, 0, before, after), value=nothing).unflatten(2, (-1, self.block))
        return torch.cat([pieces[:, :, shift : shift + self.blocks] for shift in range(self.reach + 1)], dim=3)

    def begins(self, device: torch.device) -> Tensor:
        """Of each block, its first query among the keys: (blocks,)."""
        return self.past + torch.arange(self.blocks, device=device) * self.block


class Layout(NamedTuple):
    """Which keys each block of queries is compared with; shared by the layers of a call."""

    bands: Bands
    apart: int
    """Keys before those that are in order; every block is compared with them."""
    gathered: Tensor
    """Indices among the keys in order of the kept ones before each band: (rows, blocks, kept)."""
    biased: bool
    """Whether each head has a mask of its own."""
    mask: Tensor
    """What is added to the scores, -inf where nothing is seen; of the shape that `queries` and `keys` give a batch."""

    def queries(self, x: Tensor) -> Tensor:
        """(batch, heads, length, width) -> as `_fold` of (batch, heads, blocks, block, width)."""
        return self._fold(self.bands.queries(x))

    def keys(self, x: Tensor) -> Tensor:
        """(batch, heads, apart + past + length, width) -> as `_fold` of (batch, heads, blocks, keys, width)."""
        return self._fold(beside(self.bands, self.apart, self.gathered, x))

    @property
    def alike(self) -> bool:
        """Whether the masks of one row hold for all rows of a batch."""
        return self.gathered.size(0) == 1

    def _fold(self, x: Tensor) -> Tensor:
        """(batch, heads, blocks, n, width) with blocks for rows or for heads, so that no mask has to be repeated.

        One mask for all rows and heads: (blocks, batch · heads, n, width). One of each head for all rows:
        (batch, blocks · heads, n, width). Masks of each row: (batch · blocks, heads, n, width).
        """
        if self.alike and not self.biased:
            return x.permute(2, 0, 1, 3, 4).flatten(1, 2)
        return x.transpose(1, 2).flatten(1, 2) if self.alike else x.transpose(1, 2).flatten(0, 1)

    def unfold(self, mixed: Tensor, batch: int, length: int) -> Tensor:
        """As many numbers as `queries` gave, back as (batch, heads, length, width)."""
        if self.alike and not self.biased:
            blocks = mixed.unflatten(1, (batch, -1)).permute(1, 2, 0, 3, 4)
        elif self.alike:
            blocks = mixed.unflatten(1, (self.bands.blocks, -1)).transpose(1, 2)
        else:
            blocks = mixed.unflatten(0, (batch, -1)).transpose(1, 2)
        return blocks.flatten(2, 3)[:, :, :length]


def lay_out(
    pattern: Pattern, query: Where, key: Where, apart: int, kept: list[int], bias: Bias | None, dtype: torch.dtype
) -> Layout:
    """How to compute a pattern in blocks.

    Args:
        pattern: who is seen.
        query: where the queries are, (rows, length).
        key: where the keys are, (rows, apart + past + length); all but the first `apart` are in order.
        apart: keys that stand apart, none of which is among the others.
        kept: positions that stay visible for ever and may be among the keys in order before a band.
        bias: the position variant's.
        dtype: of the scores.
    """
    length = query.position.size(1)
    bands = Bands.cut(pattern.window, key.position.size(1) - apart - length, length)
    gathered, there = kept_before(bands, query.position, kept)
    queries = Where(*(bands.queries(t[:, None, :, None], -1).flatten(0, 2).squeeze(-1) for t in query))
    position, document = (beside(bands, apart, gathered, t[:, None, :, None], -1)[:, 0, :, :, 0] for t in key)
    position[:, :, apart : apart + gathered.size(2)].masked_fill_(~there, -1)
    keys = Where(position.flatten(0, 1), document.flatten(0, 1))
    visible = dense_mask(pattern.visible, queries, keys)
    mask = additive(visible, bias(queries.position, keys.position) if bias else None, dtype)
    if bias and gathered.size(0) == 1:
        mask = mask.flatten(0, 1)[None]  # (1, blocks · heads, block, keys)
    return Layout(bands, apart, gathered, bias is not None, mask)


def kept_before(bands: Bands, position: Tensor, kept: list[int]) -> tuple[Tensor, Tensor]:
    """Where the kept tokens stand that the document of each block's first query has before the band.

    Returns:
        Indices among the keys in order, (rows, blocks, kept), and whether there is one before the band, likewise.
    """
    begins = bands.begins(position.device)
    first = position[:, begins - bands.past]
    index = (begins - first)[:, :, None] + torch.tensor(kept, dtype=torch.int64, device=position.device)
    there = (first >= 0)[:, :, None] & (index >= 0) & (index < (begins - bands.reach * bands.block)[:, None])
    return index.where(there, 0), there


def beside(bands: Bands, apart: int, gathered: Tensor, x: Tensor, nothing: float = 0.0) -> Tensor:
    """What each block is compared with: the keys apart, the gathered ones, the band, along the fourth dimension.

    Shapes: (batch, heads, apart + past + length, width) -> (batch, heads, blocks, keys, width).
    """
    alone, ordered = x.split((apart, x.size(2) - apart), dim=2)
    parts = [alone[:, :, None].expand(-1, -1, bands.blocks, -1, -1)] if apart else []
    if gathered.numel():
        parts.append(gather(ordered, gathered))
    return torch.cat([*parts, bands.keys(ordered, nothing)], dim=3)


def gather(x: Tensor, index: Tensor) -> Tensor:
    """(batch, heads, length, width) at (rows, blocks, kept) -> (batch, heads, blocks, kept, width)."""
    if index.size(0) == 1:
        return x.index_select(2, index.flatten()).unflatten(2, index.shape[1:])
    flat = index.flatten(1)[:, None, :, None].expand(-1, x.size(1), -1, x.size(3))
    return x.gather(2, flat).unflatten(2, index.shape[1:])
