"""Power laws that are known, fitted and extrapolated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.insight.cost.growth import extrapolated, fitted

LENGTHS = (256, 512, 1024, 2048, 4096)


def law(exponent: float, factor: float = 3e-7) -> dict[int, float]:
    return {length: factor * length**exponent for length in LENGTHS}


def test_the_square_is_fitted_exactly():
    assert fitted(law(2), LENGTHS).exponent == 2


@settings(deadline=None)
@given(st.floats(0, 3), st.floats(1e-9, 1e9))
def test_any_power_is_fitted(exponent, factor):
    assert fitted(law(exponent, factor), LENGTHS).exponent == pytest.approx(exponent, abs=1e-9)


def test_least_squares_by_hand():
    """Of (0, 0), (1, 0), (2, 3) in powers of two the slope is 3/2."""
    assert fitted({1: 1.0, 2: 1.0, 4: 8.0}, [1, 2, 4]).exponent == 1.5


def test_only_the_lengths_asked_for_count_where_two_of_them_were_measured():
    costs = {256: 1000.0, 512: 1.0, 1024: 2.0, 2048: 4.0}
    assert fitted(costs, [512, 1024, 2048, 4096]) == (1.0, (512, 1024, 2048))
    assert fitted(costs, [2048, 4096]).lengths == (256, 512, 1024, 2048)


def test_one_point_has_no_slope_and_nothing_no_logarithm():
    assert fitted({256: 1.0}, [256]) is None
    assert fitted({256: 0.0, 512: 1.0}, [256, 512]) is None
    assert fitted({256: 0.0, 512: 1.0, 1024: 2.0}, [256, 512, 1024]) == (1.0, (512, 1024))


@pytest.mark.parametrize("exponent", [0, 1, 1.5, 2])
def test_the_last_two_lengths_tell_the_next(exponent):
    costs = {256: 9.0, **{length: 0.5 * length**exponent for length in (1024, 4096)}}
    assert extrapolated(costs, 8192) == pytest.approx(0.5 * 8192**exponent)


def test_nothing_is_thought_to_grow_faster_than_the_square_or_to_shrink():
    assert extrapolated({256: 1.0, 512: 100.0}, 1024) == pytest.approx(400)
    assert extrapolated({256: 0.0, 512: 100.0}, 1024) == pytest.approx(400)
    assert extrapolated({256: 100.0, 512: 50.0}, 1024) == pytest.approx(50)


@pytest.mark.parametrize("costs", [{}, {256: 1.0}])
def test_less_than_two_lengths_tell_nothing(costs):
    assert extrapolated(costs, 512) is None
