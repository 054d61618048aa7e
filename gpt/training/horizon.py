"""How long a training lasts: a number of updates, or a time."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, takewhile

from gpt.config import UserError

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Horizon:
    """Counts updates from 0 on until `steps` are done or, where a budget is given, until `budget` seconds are over.

    Time counts from `start` on, which is called before the model is compiled; evaluations are included. Whoever
    iterates asks `reached` once an update, since the answer of a budget depends on when it is asked. A resumed run
    starts where it was left.
    """

    def __init__(self, steps: int, budget: float | None = None) -> None:
        self.steps = steps
        self.budget = budget
        self.done = 0
        self.asides: dict[str, float] = {}
        """Seconds of `elapsed` that were no training, by what they were."""
        self._started: float | None = None
        self._first_update = 0.0
        self._over = False
        self._agree: Callable[[float], float] = lambda seconds: seconds

    def start(
        self,
        done: int = 0,
        elapsed: float = 0.0,
        agree: Callable[[float], float] = lambda seconds: seconds,
        asides: Mapping[str, float] | None = None,
    ) -> None:
        """Let the time run.

        Args:
            done: updates that were done before.
            elapsed: seconds that they took.
            agree: what several processes that share a budget take for the time, whose clocks differ.
            asides: seconds of those that were no training; None: none were.
        """
        self.done = done
        self.asides = dict(asides or {})
        self._started = time.perf_counter() - elapsed
        self._agree = agree

    def __iter__(self) -> Iterator[int]:
        # Progress never jumps back: of a resumed run, all the time that is over counts.
        self._first_update = 0.0 if self.done else self._agree(self.elapsed)
        return takewhile(lambda _: not self._over, count(self.done))

    @property
    def elapsed(self) -> float:
        """Seconds since `start`, 0 before."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    @contextmanager
    def aside(self, what: str) -> Iterator[None]:
        """Count the seconds within as `what`, and as no training."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.asides[what] = self.asides.get(what, 0.0) + time.perf_counter() - begin

    def updates(self, seconds: float) -> int:
        """How many updates there will be, or about how many if each takes `seconds`."""
        return max(1, round(self.budget / seconds)) if self.budget else self.steps

    def seconds_left(self, seconds: float) -> float:
        """About how long the updates that are to come last, if each takes `seconds`."""
        return max(0.0, self.budget - self.elapsed) if self.budget else (self.steps - self.done) * seconds

    def is_over(self, done: int, elapsed: float) -> bool:
        """Whether a training that has done so many updates in so many seconds is at its end."""
        return elapsed >= self.budget if self.budget else done >= self.steps

    def progress(self, step: int) -> float:
        """Where update `step` stands, in (0, 1]: (step + 1) / steps, or the share of the budget that is over.

        The share counts from the first update on: compiling takes time of the budget, and none of the warmup.
        """
        if not self.budget:
            return (step + 1) / self.steps
        left = self.budget - self._first_update
        return min(1.0, (self._agree(self.elapsed) - self._first_update) / left) if left > 0 else 1.0

    def reached(self, step: int) -> bool:
        """Whether update `step` is the last one; if so, the iteration ends with it."""
        self._over = self.is_over(step + 1, self._agree(self.elapsed) if self.budget else 0.0)
        return self._over


def parse_duration(text: str, setting: str = "budget") -> float:
    """`90s`, `5min`, `1.5h` -> seconds.

    >>> parse_duration("5min")
    300.0

    Raises:
        UserError: anything else; it is told with the setting that holds it.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h)", text)
    if not match or not 0 < float(match[1]) * UNITS[match[2]] < math.inf:
        raise UserError(f"{setting}: {text!r} is no time above 0; write it like 90s, 5min or 1.5h")
    return float(match[1]) * UNITS[match[2]]
