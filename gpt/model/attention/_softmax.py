"""What the variants share that weigh values by a softmax over the keys that are seen.

    weights = softmax(Q Kᵀ / sqrt(head_dim) + bias),  what is not visible set to -inf before the softmax

(Vaswani et al. 2017, section 3.2.1; the bias is ALiBi's, Press et al. 2022.)
"""

import math

import torch
from torch import Tensor

from gpt.model.attention import Attention, Place
from gpt.model.cache import KeyValueMemory, Memory
from gpt.model.cache.static import StaticMemory
from gpt.model.mask import Where, dense_mask


class SoftmaxAttention(Attention):
    """Attention by a softmax; a variant overrides `mix`."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Place, memory: Memory | None) -> Tensor:
        """Append to the memory, then mix over all that it gives."""
        key_where = place.where
        if memory is not None:
            assert isinstance(memory, KeyValueMemory), f"{type(memory).__name__} keeps no keys and values"
            key, value, key_where = memory.append(key, value, place.where)
        return self.mix(query, key, value, place, key_where)

    def mix(self, query: Tensor, key: Tensor, value: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """The weights · value over the visible keys; zeros where none is.

        `key_where` None means keys at positions 0, 1, 2, ..., of which the queries are the last.
        """
        raise NotImplementedError

    def weights(self, query: Tensor, key: Tensor, place: Place, key_where: Where | None = None) -> Tensor:
        """How much each query takes of each key: (batch, n_head, query_length, key_length), rows sum to 1 or are 0.

        `key_where` None means the keys of this call, or with `place.where` None those at positions 0, 1, 2, ...
        """
        visible, bias = self.mask(key, place, key_where or place.where)
        return attention_weights(query, self.repeat(key), visible, bias)

    def mask(self, key: Tensor, place: Place, key_where: Where | None) -> tuple[Tensor, Tensor | None]:
        """What every query sees, (batch or 1, 1, query_length, key_length) bool, and the position's bias on scores."""
        end = key.size(2)

        def make() -> tuple[Tensor, Tensor | None]:
            where = key_where or Where.contiguous(0, end, key.device)
            bias = place.bias(place.position, where.position) if place.bias else None
            return dense_mask(self.visible, place.located, where), bias

        return place.once((self.visible, key_where is None, end), make)

    def build_memory(self, capacity: int) -> Memory:
        """Every key and value."""
        return StaticMemory(capacity)


def attention_weights(query: Tensor, key: Tensor, visible: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """softmax(query · keyᵀ / sqrt(head_dim) + bias) over the visible keys: (batch, heads, query_length, key_length).

    A row that sees nothing gets zeros, and finite gradients: -inf throughout would give NaN there, so the scores get
    the least finite number, and the uniform weights that come of it are then set to zero.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if visible is None:
        return scores.softmax(dim=-1)
    least = torch.finfo(scores.dtype).min
    return scores.masked_fill(~visible, least).softmax(dim=-1).masked_fill(~visible, 0.0)


def attend_once(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mixture of one query a row, (batch, heads, 1, head_dim), as plain sums, of which a compiler makes loops.

    `mask` is added to the scores, (batch or 1, heads or 1, 1, key_length).
    """
    scaled = query.float() / math.sqrt(query.size(-1))
    scores = (scaled * key).sum(dim=-1, keepdim=True)
    if mask is not None:
        scores = scores + mask.transpose(-2, -1)
    weights = (scores - scores.amax(dim=-2, keepdim=True)).exp()
    mixed: Tensor = (weights * value).sum(dim=-2, keepdim=True) / weights.sum(dim=-2, keepdim=True)
    return mixed.to(query.dtype)
