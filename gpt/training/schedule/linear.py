"""Linear decay:  1 - (1 - floor) · progress."""

from typing import Literal

from gpt.training.schedule import DecayingConfig


class LinearConfig(DecayingConfig):
    """A straight line from the peak to the floor."""

    name: Literal["linear"] = "linear"

    def shape(self, progress: float) -> float:
        """From 1 to the floor."""
        return 1 - (1 - self.floor) * progress
