"""Warmup, stable, decay (Hu et al. 2024): the peak, then a straight line to the floor over the last share."""

from typing import Literal

from pydantic import Field

from gpt.training.schedule import DecayingConfig


class WsdConfig(DecayingConfig):
    """The peak for most of the training, then a straight line to the floor."""

    name: Literal["wsd"] = "wsd"
    decay: float = Field(default=0.3, gt=0, le=1)
    """Share of what follows the warmup over which the learning rate falls."""

    def shape(self, progress: float) -> float:
        """1 until the decay begins."""
        left = min(1.0, (1 - progress) / self.decay)
        return self.floor + (1 - self.floor) * left
