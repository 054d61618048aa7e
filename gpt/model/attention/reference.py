"""Scaled dot-product attention written out (Vaswani et al. 2017, section 3.2.1): the oracle of all exact variants.

softmax(Q Kᵀ / sqrt(d_k)) V,  what is not visible set to -inf before the softmax
"""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.model.attention import Attention, AttentionConfig, Place, SoftmaxAttention
from gpt.model.config import GPTConfig
from gpt.model.mask import Where


class ReferenceConfig(AttentionConfig):
    """Written out, O(length²) memory; slow, exact, and able to show its weights."""

    name: Literal["reference"] = "reference"

    def build(self, model: GPTConfig, layer: int) -> Attention:
        """The module."""
        return Reference(model)


class Reference(SoftmaxAttention):
    """The formula, step by step."""

    def mix(self, query: Tensor, key: Tensor, value: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """Weights, dropout, mixture."""
        weights = F.dropout(self.weights(query, key, place, key_where), self.dropout, self.training)
        return weights @ self._repeat(value)

    def weights(self, query: Tensor, key: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """How much each query takes of each key: (batch, n_head, query_length, key_length), rows sum to 1 or are 0."""
        visible, bias = self.mask(key, place, key_where)
        return attention_weights(query, self._repeat(key), visible, bias)

    def _repeat(self, heads: Tensor) -> Tensor:
        """One key or value head for each query head."""
        return heads.repeat_interleave(self.n_head // self.n_kv_head, dim=1)


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


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None
) -> Tensor:
    """softmax(query · keyᵀ / sqrt(head_dim)) · value, masked before the softmax (Vaswani et al. 2017, equation 1).

    Args:
        query: (batch, heads, query_length, head_dim).
        key: (batch, heads, key_length, head_dim).
        value: (batch, heads, key_length, value_dim); value_dim is free.
        attention_mask: bool, broadcasts to (batch, heads, query_length, key_length); True means visible.

    Returns:
        (batch, heads, query_length, value_dim); zeros for a query that sees nothing.

    Raises:
        ValueError: key and value differ in length, or query and key in head_dim.
        TypeError: a mask that is not boolean.

    With equal scores each query takes the mean of the values that it sees:

    >>> import torch, gpt
    >>> query, key = torch.zeros(1, 1, 3, 4), torch.zeros(1, 1, 3, 4)
    >>> value = torch.tensor([[[[3.0], [5.0], [10.0]]]])
    >>> gpt.scaled_dot_product_attention(query, key, value, gpt.build_causal_mask(3)).flatten()
    tensor([3., 4., 6.])
    """
    if key.size(-2) != value.size(-2):
        raise ValueError(f"key and value must have one length, got {key.size(-2)} and {value.size(-2)}")
    if query.size(-1) != key.size(-1):
        raise ValueError(f"query and key must have one head_dim, got {query.size(-1)} and {key.size(-1)}")
    if attention_mask is not None and attention_mask.dtype != torch.bool:
        raise TypeError(f"attention_mask must be boolean, True where visible, got {attention_mask.dtype}")
    return attention_weights(query, key, attention_mask) @ value
