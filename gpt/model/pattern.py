"""Sparse patterns: a window before each token, and the tokens of its document that stay visible for ever.

a query at position p sees the keys at s <= p of its document where
    p - s < window                  the window
    s < sinks                       the document's first tokens (Xiao et al. 2024, arXiv:2309.17453)
    s + 1 is a multiple of stride   the columns of the Sparse Transformer (Child et al. 2019, arXiv:1904.10509)
"""

from typing import NamedTuple

from torch import Tensor

from gpt.model.mask import Predicate, causal, every, first, same_document, within


class Pattern(NamedTuple):
    """Who is seen."""

    window: int
    """A token sees itself and the window - 1 before it."""
    sinks: int = 0
    """First tokens of a document that all its later ones see."""
    stride: int | None = None
    """Each stride-th token of a document is a column, which all its later ones see; None: there are none."""

    @property
    def visible(self) -> Predicate:
        """All that is seen."""
        shown = within(self.window) | first(self.sinks)
        return causal & same_document & (shown | every(self.stride) if self.stride else shown)

    def kept(self, length: int) -> list[int]:
        """The positions below `length` that stay visible for ever.

        >>> Pattern(window=8, sinks=2, stride=4).kept(12)
        [0, 1, 3, 7, 11]
        """
        columns = range(self.stride - 1, length, self.stride) if self.stride else ()
        return sorted({*range(min(self.sinks, length)), *columns})

    def rank(self, position: Tensor, count: int) -> Tensor:
        """Which of the kept positions each is, counted from 0; `count` where it is none of the first `count`.

        >>> import torch
        >>> Pattern(window=8, sinks=2, stride=4).rank(torch.tensor([-1, 0, 2, 3, 7, 11]), count=4)
        tensor([4, 0, 4, 2, 3, 4])
        """
        rank = position.where((position >= 0) & (position < self.sinks), count)
        if self.stride:
            column = self.sinks - self.sinks // self.stride + (position + 1) // self.stride - 1
            is_column = (position >= self.sinks) & ((position + 1) % self.stride == 0)
            rank = column.where(is_column, rank)
        return rank.clamp(max=count)
