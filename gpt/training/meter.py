"""Means of what a training computes, and its time."""

import time

import torch
from torch import Tensor


class Meter:
    """Means of what the device computed since the last reading, and the time it took."""

    def __init__(self) -> None:
        self._values: list[Tensor] = []
        self._seconds = 0.0
        self.restart()

    def restart(self) -> None:
        """Leave out the time since the last `add`: it was spent on something else."""
        self._clock = time.perf_counter()

    def add(self, loss: Tensor, norm: Tensor) -> None:
        """One update's scalars; they stay on the device."""
        self._values.append(torch.stack((loss, norm)))
        now = time.perf_counter()
        self._seconds += now - self._clock
        self._clock = now

    def read(self) -> tuple[float, float, float, int]:
        """Mean loss, mean norm, seconds, updates; waits for the device."""
        updates = len(self._values)
        loss, norm = torch.stack(self._values).mean(dim=0).tolist()
        seconds = self._seconds + time.perf_counter() - self._clock
        self._values, self._seconds = [], 0.0
        self.restart()
        return loss, norm, seconds, updates
