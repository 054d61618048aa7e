"""A cache of fixed capacity that keeps every key and value: O(capacity) memory, no allocation after the first use."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from gpt.model.cache import KeyValueMemory
from gpt.model.mask import Where


class StaticMemory(KeyValueMemory):
    """Keys and values of one layer, appended in place."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self.held: list[Tensor] = []
        """Keys and values, (rows, n_kv_head, capacity, head_dim); where a `where` came, its position and document too,
        (rows, capacity). Empty before the first use."""

    @classmethod
    def over(cls, held: Sequence[Tensor], length: int) -> Self:
        """A memory of the first `length` tokens in what another one holds; it writes there too."""
        memory = cls(held[0].size(2))
        memory.held, memory.length = list(held), length
        return memory

    def append(self, keys: Tensor, values: Tensor, where: Where | None) -> tuple[Tensor, Tensor, Where | None]:
        """Store (batch, n_kv_head, length, head_dim) keys and values, and where they are.

        Returns:
            All that is stored, (batch, n_kv_head, stored, head_dim), and its where; None means positions 0, 1, 2, ...

        Raises:
            ValueError: more tokens than the capacity, or another batch size than before.
        """
        start, end = self.length, self.length + keys.size(2)
        if end > self.capacity:
            raise ValueError(f"{end} tokens do not fit a cache of {self.capacity}")
        if not self.held:
            self.held = self._empty(keys, values, where)
        held_keys, held_values, *held_where = self.held
        if keys.size(0) != held_keys.size(0):
            raise ValueError(f"a batch of {keys.size(0)} does not fit a cache of {held_keys.size(0)} rows")
        held_keys.narrow(2, start, keys.size(2)).copy_(keys)
        held_values.narrow(2, start, keys.size(2)).copy_(values)
        for stored, new in zip(held_where, where or (), strict=True):
            stored[:, start:end] = new
        self.length = end
        seen = Where(*(stored[:, :end] for stored in held_where)) if held_where else None
        return held_keys.narrow(2, 0, end), held_values.narrow(2, 0, end), seen

    def nbytes(self) -> int:
        """Keys and values, and where they are."""
        return sum(tensor.nbytes for tensor in self.held)

    def _empty(self, keys: Tensor, values: Tensor, where: Where | None) -> list[Tensor]:
        rows, heads, _, _ = keys.shape
        made = [tensor.new_empty(rows, heads, self.capacity, tensor.size(3)) for tensor in (keys, values)]
        if where is not None:
            nothing = where.position.new_full((rows, self.capacity), -1)
            made += [nothing, torch.zeros_like(nothing)]
        return made
