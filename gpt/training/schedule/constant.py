"""Constant after the warmup."""

from typing import Literal

from gpt.training.schedule import ScheduleConfig


class ConstantConfig(ScheduleConfig):
    """The peak until the end."""

    name: Literal["constant"] = "constant"

    def shape(self, progress: float) -> float:
        """1."""
        return 1.0
