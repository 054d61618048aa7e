"""Rotary positions (Su et al. 2021), in the half-split layout of Llama and Qwen.

Pair i of a head, (x[i], x[i + head_dim/2]), is turned by the angle p · base^(-2i / head_dim). The score of a query at p
and a key at s then depends on p - s alone.
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

    def build(self, model: GPTConfig) -> Position:
        """Needs an even head width."""
        if model.head_size % 2:
            raise UserError(
                f"model.head_dim: rotary positions turn pairs, {model.head_size} is odd; take an even width, "
                "or another model/position"
            )
        return Rope(model.head_size, self.base)


class Rope(Position):
    """Turns queries and keys; nothing is learned."""

    def __init__(self, head_dim: int, base: float) -> None:
        super().__init__()
        self.head_dim, self.base = head_dim, base

    def rotation(self, position: Tensor) -> Rotation:
        """(batch, length) -> angles that broadcast over heads."""
        angle = angles(position, self.head_dim, self.base)[:, None]
        return Rotation(angle.cos(), angle.sin())


def angles(position: Tensor, size: int, base: float) -> Tensor:
    """Position · base^(-2i / size) for i in 0..size/2-1: (batch, length) -> (batch, length, size / 2), fp32."""
    exponent = torch.arange(0, size, 2, device=position.device, dtype=torch.float32) / size
    return position[..., None].float() * base**-exponent
