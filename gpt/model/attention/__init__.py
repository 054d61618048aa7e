"""Self-attention: the contract of an attention variant.

A forward reads as the paper's sentence: project to queries, keys and values; place them; remember them; attend;
project out. A variant overrides `attend`, `weights`, the same written out, and `build_memory`; projections and their
names are the same in all, so a checkpoint trained with one softmax variant loads into another.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from gpt.config import Variant
from gpt.model.cache import Memory
from gpt.model.config import GPTConfig
from gpt.model.mask import Predicate, Where, causal, same_document
from gpt.model.norm import RMSNorm
from gpt.model.position import Rotation

T = TypeVar("T")


class AttentionConfig(Variant):
    """An attention variant's configuration."""

    def build(self, model: GPTConfig, layer: int) -> "Attention":
        """The module of layer `layer`, counted from 0, its parameters uninitialised."""
        raise NotImplementedError


@dataclass(frozen=True)
class Place:
    """Where the tokens of one call are; made once for the call and shared by its layers."""

    where: Where | None
    """As the caller gave it; None means one document without padding, in `position`'s order."""
    position: Tensor
    """(batch or 1, length), -1 where nothing is."""
    rotation: Rotation | None
    """What the position variant turns queries and keys by."""
    bias: Callable[[Tensor, Tensor], Tensor] | None
    """The position variant's bias on scores, of query and key positions; None where it has none."""
    back: Rotation | None = None
    """Turns queries from beyond the context back to its last position; None where nothing is beyond it, or turned."""
    _made: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def located(self) -> Where:
        """As `where`, also where the caller gave none."""
        return self.where or self.once("located", lambda: Where(self.position, torch.zeros_like(self.position)))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, such as a mask: made by the first layer that asks for `key`, shared by the others."""
        if torch.compiler.is_compiling():  # which sees by itself what is the same; a key would fix the sizes in it
            return make()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class Attention(nn.Module):
    """Causal multi-head self-attention; grouped-query (Ainslie et al. 2023) where n_kv_head < n_head."""

    visible: Predicate = causal & same_document
    """Who sees whom."""
    endless: bool = False
    """Whether neither its memory nor its time for a token grows with the text before it."""
    forgets: bool = False
    """Whether it never weighs more tokens, nor farther ones, than in a text as long as the context."""

    def __init__(self, model: GPTConfig) -> None:
        super().__init__()
        self.n_head, self.n_kv_head, self.head_dim = model.n_head, model.kv_heads, model.head_size
        self.dropout = model.dropout
        heads = self.n_head + 2 * self.n_kv_head
        self.qkv = nn.Linear(model.d_model, heads * self.head_dim, model.bias)
        self.output = nn.Linear(self.n_head * self.head_dim, model.d_model, model.bias)
        self.query_norm, self.key_norm = (
            RMSNorm(self.head_dim, model.norm_eps, model.norm_gain) if model.qk_norm else nn.Identity()
            for _ in range(2)
        )

    def forward(self, x: Tensor, place: Place, memory: Memory | None = None) -> Tensor:
        """(batch, length, d_model) -> the same; `memory` holds the tokens before."""
        query, key, value = self.place(x, place)
        mixed = self.attend(query, key, value, place, memory)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def place(self, x: Tensor, place: Place) -> tuple[Tensor, Tensor, Tensor]:
        """`project`, and queries and keys turned by the rotation where the position variant has one."""
        query, key, value = self.project(x)
        if place.rotation is not None:
            query, key = place.rotation(query), place.rotation(key)
        return query, key, value

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(batch, length, d_model) -> query, key, value: (batch, their heads, length, head_dim)."""
        heads = self.qkv(x).unflatten(-1, (-1, self.head_dim))  # (batch, length, all heads, head_dim)
        query, key, value = heads.split((self.n_head, self.n_kv_head, self.n_kv_head), dim=2)
        query, key = self.query_norm(query), self.key_norm(key)
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Place, memory: Memory | None) -> Tensor:
        """Each query's mixture of the values that it sees: (batch, n_head, length, head_dim)."""
        raise NotImplementedError

    def weights(self, query: Tensor, key: Tensor, place: Place) -> Tensor:
        """What `attend` weighs the values of one call by, written out: slow, exact, and the truth it is tested by.

        Returns:
            (batch, n_head, length, length); a row is not negative and sums to 1, or is 0 where it sees nothing.
        """
        raise NotImplementedError

    def compared(self, length: int) -> int:
        """How many keys the last query of a text of `length` tokens is multiplied with, for the count of operations."""
        return length

    def build_memory(self, capacity: int) -> Memory:
        """An empty memory for `capacity` tokens."""
        raise NotImplementedError

    def describe(self, device: torch.device, dtype: torch.dtype, packed: bool = False) -> str:
        """By what `attend` computes a text as long as the context there, in the layer's own mode, in a few words.

        Args:
            device: where.
            dtype: in which numbers.
            packed: whether in documents that do not see one another.

        Raises:
            UserError: it cannot be.
        """
        raise NotImplementedError

    def repeat(self, heads: Tensor) -> Tensor:
        """One key or value head for each query head: (batch, n_kv_head, ...) -> (batch, n_head, ...)."""
        return heads.repeat_interleave(self.n_head // self.n_kv_head, dim=1)
