import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.insight.data import lengths as module
from gpt.insight.data.lengths import Lengths


def lengths_of(numbers):
    lengths = Lengths()
    for number in numbers:
        lengths.add(number)
    return lengths


def test_by_hand():
    lengths = lengths_of([5, 0, 9, 1])
    assert (lengths.count, lengths.total, lengths.shortest, lengths.longest) == (4, 15, 0, 9)
    assert lengths.empty == 1
    assert lengths.median == 5  # the upper of 1 and 5


def test_none():
    lengths = Lengths()
    assert (lengths.count, lengths.shortest, lengths.longest, lengths.median) == (0, None, 0, 0)
    assert lengths.histogram(5) == []


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_the_median_is_exact(numbers):
    assert lengths_of(numbers).median == statistics.median_high(numbers)


def test_bars_reach_over_powers_of_two():
    lengths = lengths_of([0, 1, 2, 3, 4, 15])
    assert lengths.histogram(10) == [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 1), (8, 15, 1)]
    assert lengths.histogram(3) == [(0, 1, 2), (2, 7, 3), (8, 31, 1)]
    assert lengths_of([6, 5]).histogram(8) == [(4, 7, 2)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9), min_size=1), st.integers(1, 12))
def test_each_length_stands_under_one_bar(numbers, most):
    bars = lengths_of(numbers).histogram(most)
    assert len(bars) <= most
    assert [sum(low <= n <= high for n in numbers) for low, high, _ in bars] == [many for *_, many in bars]
    assert sum(many for *_, many in bars) == len(numbers)


def test_memory_is_bounded_and_the_median_is_near(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 100)
    lengths = lengths_of(range(10_001))
    assert len(lengths._kept) <= 100
    assert lengths.median == pytest.approx(5000, rel=0.03)
    assert (lengths.count, lengths.longest, lengths.empty) == (10_001, 10_000, 1)
