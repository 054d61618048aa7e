"""Learned positions: a table with one row for each position, added to the embeddings (GPT, Radford et al. 2018)."""

from typing import Literal

import torch
from torch import Tensor, nn

from gpt.model.config import GPTConfig
from gpt.model.position import Position, PositionConfig


class LearnedConfig(PositionConfig):
    """A learned table; it ends at the context."""

    name: Literal["learned"] = "learned"

    def build(self, model: GPTConfig) -> Position:
        """A table of (context, d_model)."""
        return Learned(model.context, model.d_model)


class Learned(Position):
    """x + table[position]."""

    relative = False

    def __init__(self, context: int, d_model: int) -> None:
        super().__init__()
        self.limit = context
        self.table = nn.Embedding.from_pretrained(torch.empty(context, d_model), freeze=False)

    def embed(self, position: Tensor) -> Tensor:
        """The table's rows; padding reads row 0."""
        return self.table(position.clamp(min=0))
