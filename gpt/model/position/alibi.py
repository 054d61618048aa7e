"""ALiBi (Press et al. 2022): no embedding, a penalty on the score that grows with distance.

    score(q, k) += -slope_h · (p_q - p_k),   slope_h = 2^(-8h / n_head) for head h = 1..n_head

For a number of heads that is no power of two the slopes are those of the next smaller power, then every second one of
the next larger, as in the authors' code.
"""

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gpt.model.config import GPTConfig
from gpt.model.position import Position, PositionConfig


class AlibiConfig(PositionConfig):
    """Linear biases."""

    name: Literal["alibi"] = "alibi"
    biases: ClassVar[bool] = True

    def build(self, model: GPTConfig) -> Position:
        """One slope per query head."""
        return Alibi(slopes(model.n_head))


class Alibi(Position):
    """Biases scores by distance; nothing is learned."""

    def __init__(self, slopes: list[float]) -> None:
        super().__init__()
        self.slopes = slopes

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        """-slope · distance, (batch, heads, query_length, key_length), fp32."""
        distance = (query[:, None, :, None] - key[:, None, None, :]).float()
        return -torch.tensor(self.slopes, device=query.device)[:, None, None] * distance


def slopes(n_head: int) -> list[float]:
    """One slope per head, the steepest first.

    >>> slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** math.floor(math.log2(n_head))
    regular = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    between = [2 ** (-8 * h / (2 * power)) for h in range(1, 2 * power + 1, 2)]
    return regular + between[: n_head - power]
