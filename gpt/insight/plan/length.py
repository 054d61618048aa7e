"""How long a training lasts, in updates and seconds, from what one of each takes."""

import math
from typing import NamedTuple

from gpt.device import REPAYS_AFTER, CompileMode
from gpt.insight.plan.timing import Timing
from gpt.training.horizon import Horizon


class Length(NamedTuple):
    """A training from where it stands to its end."""

    updates: int
    evaluations: int
    seconds: float
    """With evaluations; without compiling, saving and the preparation of data."""


def length(horizon: Horizon, eval_every: int, timing: Timing) -> Length:
    """Of so many updates, or of as many as a budget has room for with an evaluation after each `eval_every` of them.

    >>> length(Horizon(1000), 250, Timing(update=0.1, updates=9, evaluation=5.0, disturbed=None))
    Length(updates=1000, evaluations=4, seconds=120.0)
    >>> length(Horizon(1000, budget=60.0), 128, Timing(update=0.125, updates=9, evaluation=16.0, disturbed=None))
    Length(updates=240, evaluations=2, seconds=60.0)
    """
    if horizon.budget:
        left = horizon.seconds_left(0.0)
        updates = max(1, int(left / (timing.update + timing.evaluation / eval_every)))
        return Length(updates, math.ceil(updates / eval_every), left)
    updates = horizon.steps - horizon.done
    evaluations = math.ceil(horizon.steps / eval_every) - horizon.done // eval_every
    return Length(updates, evaluations, updates * timing.update + evaluations * timing.evaluation)


def compiling(mode: CompileMode, device: str, seconds: float) -> str:
    """What `compile` will come to, in a few words: `auto` asks the time of all updates, eager.

    >>> compiling("auto", "cpu", 100.0)
    'auto would not compile: only from 150 s of updates on'
    """
    if mode == "off":
        return "off"
    after = "half a minute more the first time, and each update then takes less"
    if mode != "auto":
        return f"{mode}: {after}"
    least = REPAYS_AFTER.get(device, math.inf)
    if seconds >= least:
        return f"auto would compile: {after}"
    why = f"only from {least:.0f} s of updates on" if least < math.inf else f"not on {device}"
    return f"auto would not compile: {why}"
