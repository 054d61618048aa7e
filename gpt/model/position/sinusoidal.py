"""Sinusoidal positions (Vaswani et al. 2017, section 3.5), added to the embeddings.

PE(p, 2i)     = sin(p / base^(2i / d_model))
PE(p, 2i + 1) = cos(p / base^(2i / d_model))
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from gpt.config import UserError
from gpt.model.config import GPTConfig
from gpt.model.position import Position, PositionConfig
from gpt.model.position.rope import angles


class SinusoidalConfig(PositionConfig):
    """Fixed sines and cosines."""

    name: Literal["sinusoidal"] = "sinusoidal"
    base: float = Field(default=10000.0, gt=1)
    """The longest wavelength is 2π times this."""

    def build(self, model: GPTConfig) -> Position:
        """Needs an even d_model."""
        if model.d_model % 2:
            raise UserError(
                f"model.d_model: sinusoidal positions come in pairs, {model.d_model} is odd; take an even one"
            )
        return Sinusoidal(model.d_model, self.base)


class Sinusoidal(Position):
    """x + PE(position); nothing is learned."""

    relative = False

    def __init__(self, d_model: int, base: float) -> None:
        super().__init__()
        self.d_model, self.base = d_model, base

    def embed(self, position: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, d_model), sines and cosines alternating."""
        angle = angles(position, self.d_model, self.base)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
