"""Scaled dot-product attention written out (Vaswani et al. 2017, section 3.2.1): the oracle of all exact variants.

softmax(Q Kᵀ / sqrt(d_k)) V,  what is not visible set to -inf before the softmax
"""

from typing import Literal

import torch
from torch import Tensor

from gpt.model.attention import Attention, AttentionConfig, Place
from gpt.model.attention._softmax import SoftmaxAttention, attention_weights
from gpt.model.config import GPTConfig
from gpt.model.dropout import dropout
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
        weights = dropout(self.weights(query, key, place, key_where), self.dropout, self.training)
        return weights @ self.repeat(value)

    def describe(self, device: torch.device, dtype: torch.dtype, packed: bool = False) -> str:
        """As the formula stands."""
        return "written out"


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
