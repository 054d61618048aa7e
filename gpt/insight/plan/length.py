"""How long a training lasts, in updates and seconds, from what one of each takes."""

import math
from typing import NamedTuple

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

    >>> timing = Timing("off", 0.0, update=0.125, updates=9, evaluation=16.0, disturbed=None)
    >>> length(Horizon(1000), 250, timing)
    Length(updates=1000, evaluations=4, seconds=189.0)
    >>> length(Horizon(1000, budget=60.0), 128, timing)
    Length(updates=240, evaluations=2, seconds=60.0)
    """
    if horizon.budget:
        left = horizon.seconds_left(0.0)
        updates = max(1, int(left / (timing.update + timing.evaluation / eval_every)))
        return Length(updates, math.ceil(updates / eval_every), left)
    updates = horizon.steps - horizon.done
    evaluations = math.ceil(horizon.steps / eval_every) - horizon.done // eval_every
    return Length(updates, evaluations, updates * timing.update + evaluations * timing.evaluation)
