"""Rotary positions (Su et al. 2021), in the half-split layout of Llama and Qwen.

Pair i of a head, (x[i], x[i + head_dim/2]), is turned by the angle p / factor · base^(-2i / head_dim). The score of a
query at p and a key at s then depends on p - s alone.

A factor above 1 is linear position interpolation (Chen et al. 2023, arXiv:2306.15595): a model that was trained with
factor 1 in a context of C finds no angle in one of factor · C that is larger than those it knows. A larger base slows
the slow pairs and leaves the fast ones almost as they were.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from gpt.config import UserError
from gpt.model.config import GPTConfig
from gpt.model.position import Position, PositionConfig, Rotation


class RopeConfig(PositionConfig):
    """Rotary positions."""

    name: Literal["rope"] = "rope"
    base: float = Field(default=10000.0, gt=1)
    """The longest wavelength is 2π times this."""
    factor: float = Field(default=1.0, ge=1)
    """Positions are divided by it; a model trained in a context of C begins anew in one of factor · C with init=."""

    def build(self, model: GPTConfig) -> Position:
        """Needs an even head width."""
        if model.head_size % 2:
            raise UserError(
                f"model.head_dim: rotary positions turn pairs, {model.head_size} is odd; take an even width, "
                "or another model/position"
            )
        return Rope(model.head_size, self.base, self.factor)


class Rope(Position):
    """Turns queries and keys; nothing is learned."""

    def __init__(self, head_dim: int, base: float, factor: float = 1.0) -> None:
        super().__init__()
        self.head_dim, self.base, self.factor = head_dim, base, factor

    def rotation(self, position: Tensor) -> Rotation:
        """(batch, length) -> angles that broadcast over heads."""
        angle = angles(position / self.factor, self.head_dim, self.base)[:, None]
        return Rotation(angle.cos(), angle.sin())


def angles(position: Tensor, size: int, base: float) -> Tensor:
    """Position · base^(-2i / size) for i in 0..size/2-1: (batch, length) -> (batch, length, size / 2), fp32."""
    exponent = torch.arange(0, size, 2, device=position.device, dtype=torch.float32) / size
    return position[..., None].float() * base**-exponent
