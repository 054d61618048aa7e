"""Self-attention: the contract of an attention variant.

A forward reads as the paper's sentence: project to queries, keys and values; place them; remember them; attend;
project out. A variant overrides `attend`, and `build_memory` where it remembers something else than keys and values;
projections and their names are the same in all, so a checkpoint trained with one softmax variant loads into another.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from gpt.config import Variant
from gpt.model.cache import KeyValueMemory, Memory
from gpt.model.cache.static import StaticMemory
from gpt.model.config import GPTConfig
from gpt.model.mask import Predicate, Where, causal, dense_mask, same_document
from gpt.model.norm import RMSNorm
from gpt.model.position import Rotation


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


class Attention(nn.Module):
    """Causal multi-head self-attention; grouped-query (Ainslie et al. 2023) where n_kv_head < n_head."""

    visible: Predicate = causal & same_document
    """Who sees whom."""

    def __init__(self, model: GPTConfig) -> None:
        super().__init__()
        self.n_head, self.n_kv_head, self.head_dim = model.n_head, model.kv_heads, model.head_size
        self.dropout = model.dropout
        heads = self.n_head + 2 * self.n_kv_head
        self.qkv = nn.Linear(model.d_model, heads * self.head_dim, model.bias)
        self.output = nn.Linear(self.n_head * self.head_dim, model.d_model, model.bias)
        self.query_norm = RMSNorm(self.head_dim, model.norm_eps) if model.qk_norm else nn.Identity()
        self.key_norm = RMSNorm(self.head_dim, model.norm_eps) if model.qk_norm else nn.Identity()

    def forward(self, x: Tensor, place: Place, memory: Memory | None = None) -> Tensor:
        """(batch, length, d_model) -> the same; `memory` holds the tokens before."""
        query, key, value = self.project(x)
        if place.rotation is not None:
            query, key = place.rotation(query), place.rotation(key)
        mixed = self.attend(query, key, value, place, memory)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(batch, length, d_model) -> query, key, value: (batch, their heads, length, head_dim)."""
        heads = self.qkv(x).unflatten(-1, (-1, self.head_dim))  # (batch, length, all heads, head_dim)
        query, key, value = heads.split((self.n_head, self.n_kv_head, self.n_kv_head), dim=2)
        query, key = self.query_norm(query), self.key_norm(key)
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Place, memory: Memory | None) -> Tensor:
        """Each query's mixture of the values that it sees: (batch, n_head, length, head_dim)."""
        raise NotImplementedError

    def build_memory(self, capacity: int) -> Memory:
        """An empty memory for `capacity` tokens."""
        return StaticMemory(capacity)


class SoftmaxAttention(Attention):
    """What the variants share that weigh values by a softmax over the keys that they see."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Place, memory: Memory | None) -> Tensor:
        """Append to the memory, then mix over all that it holds."""
        key_where = place.where
        if memory is not None:
            assert isinstance(memory, KeyValueMemory), f"{type(memory).__name__} keeps no keys and values"
            key, value, key_where = memory.append(key, value, place.where)
        return self.mix(query, key, value, place, key_where)

    def mix(self, query: Tensor, key: Tensor, value: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """softmax(query · keyᵀ / sqrt(head_dim) + bias) · value over the visible keys; zeros where none is.

        `key_where` None means keys at positions 0, 1, 2, ..., of which the queries are the last.
        """
        raise NotImplementedError

    def mask(self, key: Tensor, place: Place, key_where: Where | None) -> tuple[Tensor, Tensor | None]:
        """What every query sees, (batch or 1, 1, query_length, key_length) bool, and the position's bias on scores."""
        length, end = place.position.size(1), key.size(2)
        query_where = place.where or Where.contiguous(end - length, length, key.device)
        key_where = key_where or Where.contiguous(0, end, key.device)
        bias = place.bias(query_where.position, key_where.position) if place.bias else None
        return dense_mask(self.visible, query_where, key_where), bias
