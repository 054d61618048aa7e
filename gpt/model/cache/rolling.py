"""A cache that forgets: the last tokens in a ring, and beside it the tokens of a pattern that stay visible for ever.

Of T tokens it holds O(window + sinks + T / stride). A kept token is written beside the ring when it comes, and shown
there only once the ring has overwritten it, so each token is seen exactly once; what a slot holds is told by its where.
"""

from bisect import bisect_left
from collections.abc import Iterator

import torch
from torch import Tensor

from gpt.model.cache import KeyValueMemory
from gpt.model.mask import Where
from gpt.model.pattern import Pattern


class RollingMemory(KeyValueMemory):
    """Keys and values of one layer, as far as a pattern will ever look back at them.

    Args:
        pattern: who will be seen.
        capacity: tokens of a row, at most.
    """

    def __init__(self, pattern: Pattern, capacity: int) -> None:
        self.pattern, self.capacity = pattern, capacity
        self.ring = min(pattern.window, capacity)
        """Slots of the last tokens; token i is in slot i mod ring. Those of kept tokens follow, and an idle one."""
        self.kept = pattern.kept(capacity - self.ring)
        """Positions that may leave the ring and stay visible."""
        self.length = 0
        self.apart = 0
        """How many of the keys that `append` gave last stand before those that are in order."""
        self._held: list[Tensor] = []  # keys, values, position, document: each (rows, heads or 1, slots, width or 1)

    def append(self, keys: Tensor, values: Tensor, where: Where | None) -> tuple[Tensor, Tensor, Where | None]:
        """Store (batch, n_kv_head, length, head_dim) keys and values, and where they are.

        Returns:
            All that a query of this call may see, (batch, n_kv_head, seen, head_dim), and where it is: for one token
            in any order, for more first those that stand apart, then the ring's and this call's in order. Alone, and
            without a `where`, the token sees all of it. A first call of several gives back what it was given.

        Raises:
            ValueError: more tokens than the capacity, or another batch size than before.
        """
        start, end = self.length, self.length + keys.size(2)
        if end > self.capacity:
            raise ValueError(f"{end} tokens do not fit a cache of {self.capacity}")
        located = where or Where.contiguous(start, end - start, keys.device)
        new = [keys, values, *(t[:, None, :, None] for t in located)]
        if not self._held:
            self._held = [self._empty(tensor) for tensor in new]
        if keys.size(0) != self._held[0].size(0):
            raise ValueError(f"a batch of {keys.size(0)} does not fit a cache of {self._held[0].size(0)} rows")
        plain = where is None
        before = self._before(plain) if start and end - start > 1 else []
        self._store(new, plain)
        self.length = end
        if end - start == 1:
            return _split(self._seen(located, plain))
        self.apart = before[0].size(2) - min(start, self.ring) if start else 0
        if not start:
            return keys, values, where
        return _split([torch.cat(pair, dim=2) for pair in zip(before, new, strict=True)])

    def nbytes(self) -> int:
        """Keys and values, and where they are."""
        return sum(tensor.nbytes for tensor in self._held)

    def _empty(self, like: Tensor) -> Tensor:
        slots = self.ring + len(self.kept) + 1
        rows, heads, _, width = like.shape
        return like.new_full((rows, heads, slots, width), -1 if like.dtype == torch.int64 else 0)

    def _left(self, length: int) -> int:
        """How many kept positions have left the ring once `length` tokens of one document are stored."""
        return bisect_left(self.kept, length - self.ring)

    def _seen(self, where: Where, plain: bool) -> list[Tensor]:
        """The slots that hold something, ring first; with padding or documents, what the ring still has is hidden."""
        left = self._left(self.length) if plain else len(self.kept)
        seen = [tensor[:, :, : min(self.length, self.ring) + left] for tensor in self._held]
        if plain:
            return seen
        if self.length < self.ring:
            return [tensor[:, :, : self.length] for tensor in self._held]
        return [*seen[:2], self._hidden(seen[2], where.position[:, -1:]), seen[3]]

    def _hidden(self, position: Tensor, last: Tensor) -> Tensor:
        """Positions of the slots, -1 for kept tokens of which the ring has the original too."""
        beside = position[:, :, self.ring :]
        hidden = beside.masked_fill(beside > (last - self.ring)[:, None, :, None], -1)
        return torch.cat((position[:, :, : self.ring], hidden), dim=2)

    def _before(self, plain: bool) -> list[Tensor]:
        """What was stored, the kept ones that left the ring first, then the ring in order."""
        filled = min(self.length, self.ring)
        oldest = self.length % self.ring if filled == self.ring else 0
        left = self._left(self.length) if plain else len(self.kept)
        last = self._held[2][:, 0, (self.length - 1) % self.ring]  # (rows, 1)
        beside = [tensor[:, :, self.ring : self.ring + left] for tensor in self._held]
        if not plain:
            beside[2] = self._hidden(self._held[2][:, :, : self.ring + left], last)[:, :, self.ring :]
        return [
            torch.cat((kept, tensor[:, :, oldest:filled], tensor[:, :, :oldest]), dim=2)
            for kept, tensor in zip(beside, self._held, strict=True)
        ]

    def _store(self, new: list[Tensor], plain: bool) -> None:
        length = new[0].size(2)
        for source, slot, count in self._runs(length):
            for held, tensor in zip(self._held, new, strict=True):
                held[:, :, slot : slot + count] = tensor[:, :, source : source + count]
        if plain:
            self._keep_in_order(new, self.length, self.length + length)
        elif self.kept:
            self._keep_by_row(new)

    def _runs(self, length: int) -> Iterator[tuple[int, int, int]]:
        """(first token, first slot, how many) of the stretches in which the last of `length` tokens enter the ring."""
        source = max(0, length - self.ring)
        while source < length:
            slot = (self.length + source) % self.ring
            count = min(length - source, self.ring - slot)
            yield source, slot, count
            source += count

    def _keep_in_order(self, new: list[Tensor], start: int, end: int) -> None:
        """Where positions are known without a look: those from `start` to `end`."""
        first, last = bisect_left(self.kept, start), bisect_left(self.kept, end)
        if first == last:
            return
        positions = self.kept[first:last]
        # One token, or sinks: a slice, since a GPU waits for an index.
        if positions[-1] - positions[0] < len(positions):
            sources: slice | Tensor = slice(positions[0] - start, positions[-1] - start + 1)
        else:
            sources = torch.tensor(positions, device=new[0].device) - start
        for held, tensor in zip(self._held, new, strict=True):
            held[:, :, self.ring + first : self.ring + last] = tensor[:, :, sources]

    def _keep_by_row(self, new: list[Tensor]) -> None:
        """Each row by its own positions, and of its last document alone: no query will see another one's."""
        position, document = new[2], new[3]
        rank = self.pattern.rank(position, len(self.kept))
        slot = self.ring + rank.where(document == document[:, :, -1:], len(self.kept))
        for held, tensor in zip(self._held, new, strict=True):
            rows, heads, _, width = held.shape
            held.scatter_(2, slot.expand(rows, heads, -1, width), tensor.expand(rows, -1, -1, -1))


def _split(held: list[Tensor]) -> tuple[Tensor, Tensor, Where]:
    return held[0], held[1], Where(held[2][:, 0, :, 0], held[3][:, 0, :, 0])
