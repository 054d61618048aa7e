"""A cache of fixed capacity that keeps every key and value: O(capacity) memory, no allocation after the first use."""

import torch
from torch import Tensor

from gpt.model.cache import KeyValueMemory
from gpt.model.mask import Where


class StaticMemory(KeyValueMemory):
    """Keys and values of one layer, appended in place."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._where: Where | None = None

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
        if self._keys is None or self._values is None:
            batch, heads, _, width = keys.shape
            self._keys = keys.new_empty(batch, heads, self.capacity, width)
            self._values = values.new_empty(batch, heads, self.capacity, values.size(3))
        if keys.size(0) != self._keys.size(0):
            raise ValueError(f"a batch of {keys.size(0)} does not fit a cache of {self._keys.size(0)} rows")
        self._keys[:, :, start:end] = keys
        self._values[:, :, start:end] = values
        self.length = end
        return (
            self._keys[:, :, :end],
            self._values[:, :, :end],
            self._append_where(where, keys.size(0), start),
        )

    def nbytes(self) -> int:
        """Keys and values, and where they are."""
        held = [self._keys, self._values, *(self._where or ())]
        return sum(tensor.nbytes for tensor in held if tensor is not None)

    def _append_where(self, where: Where | None, batch: int, start: int) -> Where | None:
        if where is None:
            return None
        if self._where is None:
            empty = where.position.new_full((batch, self.capacity), -1)
            self._where = Where(empty, torch.zeros_like(empty))
        end = self.length
        for stored, new in zip(self._where, where, strict=True):
            stored[:, start:end] = new
        return Where(*(stored[:, :end] for stored in self._where))
