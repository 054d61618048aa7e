"""How long a training lasts: a number of updates, or a time."""

import re
import time
from collections.abc import Iterator
from itertools import count, takewhile

from gpt.config import UserError

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Horizon:
    """Counts updates from 0 on until `steps` are done or, where a budget is given, until `budget` seconds are over.

    Time counts from `start` on, which is called before the model is compiled; evaluations are included. Whoever
    iterates asks `reached` once an update, since the answer of a budget depends on when it is asked.
    """

    def __init__(self, steps: int, budget: float | None = None) -> None:
        self.steps = steps
        self.budget = budget
        self._started: float | None = None
        self._first_update = 0.0
        self._over = False

    def start(self) -> None:
        """Let the time run."""
        self._started = time.perf_counter()

    def __iter__(self) -> Iterator[int]:
        self._first_update = self.elapsed
        return takewhile(lambda _: not self._over, count())

    @property
    def elapsed(self) -> float:
        """Seconds since `start`, 0 before."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    def updates(self, seconds: float) -> int:
        """How many updates there will be, or about how many if each takes `seconds`."""
        return max(1, round(self.budget / seconds)) if self.budget else self.steps

    def progress(self, step: int) -> float:
        """Where update `step` stands, in (0, 1]: (step + 1) / steps, or the share of the budget that is over.

        The share counts from the first update on: compiling takes time of the budget, and none of the warmup.
        """
        if not self.budget:
            return (step + 1) / self.steps
        left = self.budget - self._first_update
        return min(1.0, (self.elapsed - self._first_update) / left) if left > 0 else 1.0

    def reached(self, step: int) -> bool:
        """Whether update `step` is the last one; if so, the iteration ends with it."""
        self._over = self.elapsed >= self.budget if self.budget else step + 1 >= self.steps
        return self._over


def parse_duration(text: str) -> float:
    """`90s`, `5min`, `1.5h` -> seconds.

    >>> parse_duration("5min")
    300.0

    Raises:
        UserError: anything else.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h)", text)
    if not match or float(match[1]) == 0:
        raise UserError(f"budget: {text!r} is no duration; write it like 90s, 5min or 1.5h")
    return float(match[1]) * UNITS[match[2]]
