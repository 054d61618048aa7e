"""How the model knows where a token stands: the contract of a position variant.

A variant gives any of three: something added to the embeddings, a rotation of queries and keys, a bias on the scores.
Positions are int64 tensors of (batch, length), -1 where nothing is; what a variant gives there is finite and unused.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from gpt.config import Variant
from gpt.model.config import GPTConfig


class PositionConfig(Variant):
    """A position variant's configuration."""

    biases: ClassVar[bool] = False
    """Whether it biases scores, which needs an attention that has scores."""

    def build(self, model: GPTConfig) -> "Position":
        """The module, its parameters uninitialised."""
        raise NotImplementedError


def biases(model: GPTConfig) -> bool:
    """Whether a model's position variant biases scores."""
    return isinstance(model.position, PositionConfig) and model.position.biases


class Rotation(NamedTuple):
    """Angles to turn queries and keys by, each of shape (batch, 1, length, head_dim / 2), fp32."""

    cos: Tensor
    sin: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """`x` (batch, heads, length, head_dim) with each pair (x[i], x[i + head_dim/2]) turned by its angle."""
        first, second = x.chunk(2, dim=-1)
        turned = (first * self.cos - second * self.sin, second * self.cos + first * self.sin)
        return torch.cat(turned, dim=-1).to(x.dtype)


class Position(nn.Module):
    """What a variant may give; this one gives nothing."""

    limit: int | None = None
    """Positions that there are; None: no end."""
    relative: bool = True
    """Whether distances alone count: beyond the context, what is no farther away than it is long is seen as within."""

    def embed(self, position: Tensor) -> Tensor | None:
        """Added to the token embeddings: (batch, length, d_model)."""
        return None

    def rotation(self, position: Tensor) -> Rotation | None:
        """Applied to queries and keys of every layer; computed once for a call of the model."""
        return None

    bias: Callable[[Tensor, Tensor], Tensor] | None = None
    """Added to the scores: positions (batch, query_length), (batch, key_length) -> (batch, heads, query_length,
    key_length). None where the variant has no bias, so that the fast paths without one are known beforehand."""
