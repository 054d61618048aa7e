"""How a cost grows with the length: the exponent p of the power law that fits best, cost = c · length^p.

A power law is a straight line of logarithms, log cost = p · log length + log c, and p its slope by least squares:

    p = Σ (x - mean x)(y - mean y) / Σ (x - mean x)²,    x = log length, y = log cost
"""

import math
from collections.abc import Collection, Mapping
from statistics import linear_regression
from typing import NamedTuple

STEEPEST = 2.0
"""No attention's cost grows faster than the square of the length; what was measured at small lengths may seem to."""

ByLength = Mapping[int, float]
"""Seconds or bytes by length."""


class Fit(NamedTuple):
    """A fitted power law."""

    exponent: float
    lengths: tuple[int, ...]
    """What it was fitted over."""


def fitted(costs: ByLength, lengths: Collection[int]) -> Fit | None:
    """The fit over those of `lengths` that were measured, or all there are where fewer than two were; None for one.

    >>> fitted({1: 3.0, 2: 12.0, 4: 48.0}, [2, 4, 8])
    Fit(exponent=2.0, lengths=(2, 4))
    """
    positive = {length: cost for length, cost in sorted(costs.items()) if cost > 0}
    chosen = [length for length in positive if length in lengths]
    if len(chosen) < 2:
        chosen = list(positive)
    if len(chosen) < 2:
        return None
    line = linear_regression([math.log(length) for length in chosen], [math.log(positive[n]) for n in chosen])
    return Fit(round(line.slope, 12), tuple(chosen))


def extrapolated(costs: ByLength, length: int) -> float | None:
    """The cost at a greater length, by the power law through the last two that are known; None where one is not enough.

    >>> extrapolated({1: 3.0, 2: 6.0}, 8)
    24.0
    """
    if len(costs) < 2:
        return None
    before, last = sorted(costs)[-2:]
    growth = costs[last] / costs[before] if costs[before] > 0 else math.inf
    exponent = math.log(growth) / math.log(last / before) if 0 < growth < math.inf else STEEPEST
    return costs[last] * (length / last) ** min(STEEPEST, max(0.0, exponent))
