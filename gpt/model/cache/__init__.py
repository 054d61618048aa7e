"""What a model remembers between calls. The model itself is stateless: a cache is passed in.

A `Cache` holds one `Memory` per layer; the kind is chosen by the layer's attention. Buffers are made at the first use,
in the batch size, dtype and device of what is stored. How full a cache is, is a Python int.
"""

from collections.abc import Sequence

from torch import Tensor

from gpt.model.mask import Where


class Memory:
    """One layer's memory; what it stores and offers is between the kind and the attentions that ask for it."""

    def nbytes(self) -> int:
        """What it holds, in bytes; 0 before the first use."""
        raise NotImplementedError


class KeyValueMemory(Memory):
    """What softmax attention asks of a memory, whatever it keeps."""

    def append(self, keys: Tensor, values: Tensor, where: Where | None) -> tuple[Tensor, Tensor, Where | None]:
        """Store (batch, n_kv_head, length, head_dim) keys and values, and where they are.

        Returns:
            All keys and values that any query of this call may see, (batch, n_kv_head, stored, head_dim), and where
            they are; None means positions 0, 1, 2, ...
        """
        raise NotImplementedError


class Cache:
    """One memory per layer, and how many tokens went in."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self.memories = memories
        self.length = 0
        self._has_where: bool | None = None

    def nbytes(self) -> int:
        """What all layers hold, in bytes."""
        return sum(memory.nbytes() for memory in self.memories)

    def check(self, where: Where | None) -> None:
        """Refuse tokens that would be misplaced, before a memory has them.

        Args:
            where: as the caller of the model gave it.

        Raises:
            ValueError: `where` given in some calls and not in others.
        """
        if self._has_where not in (None, where is not None):
            raise ValueError("where must be given in every call with a cache or in none")

    def advance(self, length: int, where: Where | None) -> None:
        """Count `length` more tokens, which are in all memories."""
        self._has_where = where is not None
        self.length += length
