"""No positions: order is known through the causal mask alone (Haviv et al. 2022)."""

from typing import Literal

from gpt.model.config import GPTConfig
from gpt.model.position import Position, PositionConfig


class NoneConfig(PositionConfig):
    """No positions."""

    name: Literal["none"] = "none"

    def build(self, model: GPTConfig) -> Position:
        """A position that gives nothing."""
        return Position()
