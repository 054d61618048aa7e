"""Curves for a page: their points, few enough, and none of their peaks lost."""

import json
import math

import numpy as np
import pytest

from gpt.insight.curves import LEAST, MOST, POINTS, Curve, chart, points, share, thinned


def columns(y):
    steps = np.arange(1.0, len(y) + 1)
    return {"step": steps, "tokens": 100 * steps, "elapsed": steps / 2, "loss": np.array(y, float)}


def test_points_stand_on_each_axis_and_what_is_not_finite_is_left_out():
    curve = Curve("one", columns([3.0, math.nan, 2.0, math.inf, 1.0]), "loss")
    axes = {"step": [1, 3, 5], "tokens": [100, 300, 500], "elapsed": [0.5, 1.5, 2.5]}
    assert points(curve, 10) == {**axes, "y": [3, 2, 1]}


def test_a_unit_divides():
    assert points(Curve("one", columns([2e9, 1.5e9]), "loss", 1e9), 10)["y"] == [2, 1.5]


@pytest.mark.parametrize("length, most", [(100_000, 1500), (1501, 1500), (7, 4)])
def test_thinning_keeps_the_ends_and_the_extremes(length, most):
    values = np.random.default_rng(0).normal(size=length)
    values[[length // 3, length // 2]] = [1e6, -1e6]
    kept = thinned(values, most)
    assert len(kept) <= most
    assert (np.diff(kept) > 0).all()
    assert {0, length - 1, length // 3, length // 2} <= set(kept.tolist())


def test_a_peak_in_each_stretch_stays():
    """1000 values in 10 stretches, a spike up and one down in each: 20 of them, and the ends."""
    values = np.zeros(1000)
    values[37::100], values[61::100] = 1, -1
    assert thinned(values, 22).tolist() == sorted([0, 999, *range(37, 1000, 100), *range(61, 1000, 100)])


def test_what_is_short_stays_whole():
    assert thinned(np.zeros(5), 5).tolist() == [0, 1, 2, 3, 4]
    assert thinned(np.zeros(0), 5).tolist() == []


@pytest.mark.parametrize("curves", [1, 10, 200])
def test_a_page_of_long_curves_stays_below_two_megabytes(curves):
    table = columns(np.random.default_rng(0).normal(size=100_000 // curves))
    drawn = [chart("Loss", "nats", [Curve("a run", table, "loss")], share(curves)) for _ in range(curves)]
    assert len(json.dumps(drawn)) < 1_800_000
    assert LEAST * curves <= sum(len(one["series"][0]["y"]) for one in drawn) <= max(POINTS, MOST)


def test_a_curve_without_points_is_left_out():
    one = chart("Loss", "nats", [Curve("a", columns([math.nan]), "loss"), Curve("b", columns([1.0]), "loss")], 10)
    assert [series["name"] for series in one["series"]] == ["b"]
