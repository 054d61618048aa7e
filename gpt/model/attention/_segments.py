"""A long plain text cut into segments, each computed in blocks by itself.

All blocks of a long text at once would hold several times its keys, in tensors so large that an allocator gives their
memory back and takes it anew at each step; and the first blocks would be compared with room for all that the last ones
have kept.
"""

from bisect import bisect_left
from typing import NamedTuple

import torch
from torch import Tensor

from gpt.model.attention._blocks import Bands
from gpt.model.pattern import Pattern

SIZE = 2048
"""Tokens of a segment, at least: enough for one product, and few enough for a processor's cache."""


class Segments(NamedTuple):
    """How a text of one document is cut, from its beginning."""

    size: int
    """Tokens of a segment; the last one may have fewer."""
    past: int
    """Keys in order before a segment, which are in the bands of its blocks."""
    kept: list[int]
    """Positions of the text that stay visible for ever."""

    @classmethod
    def cut(cls, pattern: Pattern, length: int) -> "Segments":
        """Segments of whole blocks, none shorter than what is looked back at in order."""
        bands = Bands.cut(pattern.window, 0, length)
        blocks = max(-(-SIZE // bands.block), bands.reach)
        return cls(blocks * bands.block, bands.reach * bands.block, pattern.kept(length))

    def queries(self, x: Tensor) -> tuple[Tensor, ...]:
        """(batch, heads, length, width) -> of each segment (batch, heads, size, width)."""
        return x.split(self.size, dim=2)

    def kept_index(self, device: torch.device) -> Tensor:
        """Of the kept tokens, (kept,): to be made once for all that is gathered by it, since a GPU waits for it."""
        return torch.tensor(self.kept, dtype=torch.int64, device=device)

    def keys(self, x: Tensor, index: Tensor) -> list[Tensor]:
        """(batch, heads, length, width) -> of each segment (batch, heads, apart + past + size, width), by `kept_index`.

        A slice's gradient is as large as what it is cut from: it is cut from a neighbour, or from the kept keys.
        """
        kept = x.index_select(2, index)
        pieces = self.queries(x)
        return [
            torch.cat((kept[:, :, : self.apart(i)], pieces[i - 1][:, :, self.size - self.past :], piece), dim=2)
            if i
            else piece
            for i, piece in enumerate(pieces)
        ]

    def oldest(self, i: int) -> int:
        """The position of the first key of segment i that is in order."""
        return max(0, i * self.size - self.past)

    def apart(self, i: int) -> int:
        """How many kept keys stand apart, before those in order."""
        return bisect_left(self.kept, self.oldest(i))

    def within(self, i: int) -> list[int]:
        """The kept positions among the keys of segment i that are in order, before its last band."""
        return self.kept[self.apart(i) : bisect_left(self.kept, (i + 1) * self.size - self.past)]
