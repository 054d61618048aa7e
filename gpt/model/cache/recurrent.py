"""A cache that keeps no tokens: sums over those seen, of one size however long the text is (Katharopoulos et al. 2020).

    S = Σ_j φ(k_j) [v_j, 1]ᵀ    over the tokens j of the last document

The column of ones makes the last column Σ_j φ(k_j), by which what is read is divided.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from gpt.model.cache import Memory


class State(NamedTuple):
    """What linear attention knows of the tokens before."""

    sums: Tensor
    """S: (batch, n_kv_head, head_dim, head_dim + 1), fp32 at least."""
    document: Tensor
    """(batch,) int64: the document that was summed in each row, that of its last token that is there."""

    @classmethod
    def empty(cls, key: Tensor, value: Tensor) -> Self:
        """Of no token, for keys and values of (batch, n_kv_head, length, head_dim)."""
        batch, heads, _, width = key.shape
        dtype = torch.promote_types(key.dtype, torch.float32)
        sums = key.new_zeros(batch, heads, width, value.size(3) + 1, dtype=dtype)
        return cls(sums, key.new_zeros(batch, dtype=torch.int64))


class RecurrentMemory(Memory):
    """The running state of one layer."""

    def __init__(self) -> None:
        self.state: State | None = None

    def read(self, key: Tensor, value: Tensor) -> State:
        """The state that the tokens of these keys and values are to be added to; shapes as in `State.empty`.

        Raises:
            ValueError: another batch size than before.
        """
        if self.state is None:
            return State.empty(key, value)
        rows = self.state.sums.size(0)
        if key.size(0) != rows:
            raise ValueError(f"a batch of {key.size(0)} does not fit a cache of {rows} rows")
        return self.state

    def write(self, state: State) -> None:
        """Keep `state` in place of the one before."""
        self.state = state

    def nbytes(self) -> int:
        """The sums, and which document they are of."""
        return sum(tensor.nbytes for tensor in self.state or ())
