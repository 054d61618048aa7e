"""Curves of runs, as the script of a page draws them: of long ones only so many points, and all of their peaks.

A page has a list of charts under `charts` in its data; `template/chart.js` draws them, over steps, tokens or time.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpt.insight.record import Columns

AXES = ("step", "tokens", "elapsed")
"""The columns over which curves are drawn, as the reader of a page chooses."""

POINTS = 24_000
"""Of all curves of a page together, about; a point takes about 30 bytes."""

LEAST, MOST = 60, 1500
"""Points of a curve, whatever their number; a screen has about as many."""

DIGITS = 6
"""Of a number, that are kept."""


class Curve(NamedTuple):
    """What is drawn as a line."""

    name: str
    """In the legend."""
    columns: Columns
    """Of the run."""
    column: str
    """The one that is drawn."""
    unit: float = 1.0
    """What a number is divided by: 1e9 where bytes are shown as GB."""


def chart(title: str, unit: str, curves: Sequence[Curve], most: int, zero: bool = False) -> dict[str, Any]:
    """A chart as the script reads it; without series where there is nothing to draw.

    Args:
        title: what is drawn.
        unit: of the numbers.
        curves: the lines.
        most: points of each, at most.
        zero: whether the axis begins there, so that a small change looks small.
    """
    drawn = [{"name": curve.name, **points(curve, most)} for curve in curves]
    return {"title": title, "unit": unit, "zero": zero, "series": [series for series in drawn if series["y"]]}


def share(curves: int) -> int:
    """The points that each of so many curves of a page may have.

    >>> share(1), share(60), share(9000)
    (1500, 400, 60)
    """
    return min(MOST, max(LEAST, POINTS // max(1, curves)))


def points(curve: Curve, most: int) -> dict[str, list[float]]:
    """The curve's points: what is drawn as `y`, and where it stands on each of `AXES`; none that is not finite."""
    table = np.stack([curve.columns[name] for name in (*AXES, curve.column)])
    table = table[:, np.isfinite(table).all(axis=0)]
    table = table[:, thinned(table[-1], most)]
    table[-1] /= curve.unit
    return {name: [short(value) for value in row] for name, row in zip((*AXES, "y"), table.tolist(), strict=True)}


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """The places of at most so many of the values, in order: of each stretch the lowest and the highest, and both ends.

    >>> thinned(np.array([0, 5, 1, 2, 9, 3, 1, 0]), 6).tolist()
    [0, 1, 4, 7]
    """
    if len(values) <= most:
        return np.arange(len(values))
    ends = np.linspace(0, len(values), (most - 2) // 2 + 1).astype(int)
    kept = {0, len(values) - 1}
    for begin, end in pairwise(ends):
        kept |= {begin + int(np.argmin(values[begin:end])), begin + int(np.argmax(values[begin:end]))}
    return np.array(sorted(kept))


def short(value: float) -> float:
    """A number with few digits; whole ones as they are.

    >>> short(1234567.0), short(0.123456789)
    (1234567, 0.123457)
    """
    return int(value) if value.is_integer() else float(f"{value:.{DIGITS}g}")
