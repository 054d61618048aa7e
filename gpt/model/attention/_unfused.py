"""Causal attention as two matrix products and a softmax, for training on a CPU in bf16, or with dropout.

There the backward of PyTorch's fused kernel takes longer than these three take forward and backward together, since its
products are not those that the processor multiplies bf16 by. The weights are held until the backward, O(length²): up to
`LONGEST` tokens that is worth it, beyond the fused kernel catches up. That kernel has no dropout: with it PyTorch holds
the weights too, of any length.
"""

import math

import torch
from torch import Tensor

from gpt.model.dropout import dropout as drop

LONGEST = 512
"""Tokens; of 1,024 on, both take equally long."""


def pays(query: Tensor, dropout: float = 0.0) -> bool:
    """Whether this is faster than PyTorch: queries are of a training on a CPU, in bf16 and not too long, or dropped.

    Args:
        query: (batch, n_head, length, head_dim).
        dropout: share of the weights that is dropped.
    """
    trained = query.device.type == "cpu" and torch.is_grad_enabled() and query.size(2) > 1
    return trained and (dropout > 0 or (query.dtype == torch.bfloat16 and query.size(2) <= LONGEST))


def attend_causally(query: Tensor, key: Tensor, value: Tensor, dropout: float = 0.0) -> Tensor:
    """softmax(query · keyᵀ / sqrt(head_dim)) · value, each query seeing the keys up to its own place.

    The queries that share a key head are stacked to the rows of one matrix, so that keys and values are not repeated.

    Args:
        query: (batch, n_head, length, head_dim).
        key: (batch, n_kv_head, length, head_dim).
        value: (batch, n_kv_head, length, head_dim).
        dropout: share of the weights that is dropped.

    Returns:
        (batch, n_head, length, head_dim).
    """
    length, width = query.shape[2:]
    group = query.size(1) // key.size(1)
    later = torch.full((length, length), -math.inf, dtype=query.dtype, device=query.device).triu(1)
    rows = query.unflatten(1, (-1, group)).flatten(2, 3).flatten(0, 1)  # (batch · n_kv_head, group · length, head_dim)
    keys, values = key.flatten(0, 1), value.flatten(0, 1)
    scores = torch.baddbmm(later.repeat(group, 1), rows, keys.mT, alpha=1 / math.sqrt(width))
    mixed = drop(scores.softmax(dim=-1), dropout) @ values
    return mixed.unflatten(1, (group, length)).unflatten(0, (query.size(0), -1)).flatten(1, 2)
