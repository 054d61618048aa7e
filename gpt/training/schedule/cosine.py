"""Half a cosine wave (Loshchilov & Hutter 2017):  floor + (1 - floor) · (1 + cos(π · progress)) / 2."""

import math
from typing import Literal

from gpt.training.schedule import DecayingConfig


class CosineConfig(DecayingConfig):
    """Half a cosine wave from the peak to the floor."""

    name: Literal["cosine"] = "cosine"

    def shape(self, progress: float) -> float:
        """From 1 to the floor."""
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * progress)) / 2
