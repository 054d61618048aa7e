"""What would cost too much is left out, by what it cost at the last two lengths."""

import pytest

from gpt.insight.cost.costs import Costs
from gpt.insight.cost.measure import Limits, partly, too_much


@pytest.fixture
def costs() -> Costs:
    made = Costs(["dense", "window"], [1024, 2048, 4096], [])
    made.seconds.known("dense").update({1024: 2.0, 2048: 8.0})
    made.peak.known("dense").update({1024: 1e9, 2048: 4e9})
    made.seconds.known("window").update({1024: 2.0, 2048: 4.0})
    made.peak.known("window").update({1024: 1e6, 2048: 2e6})
    return made


@pytest.mark.parametrize(
    "limits, why",
    [
        (Limits(seconds=33, nbytes=17e9), None),
        (Limits(seconds=31, nbytes=17e9), "needs 32 s"),
        (Limits(seconds=33, nbytes=15e9), "needs 16 GB"),
        (Limits(seconds=31, nbytes=15e9), "needs 16 GB"),
        (Limits(seconds=33, nbytes=None), None),
    ],
)
def test_dense_attention_is_left_out_by_its_square(costs, limits, why):
    assert too_much(costs, "dense", 4096, limits) == why


def test_what_grows_with_the_length_goes_on(costs):
    assert too_much(costs, "window", 4096, Limits(seconds=8.1, nbytes=4.1e6)) is None
    assert too_much(costs, "window", 4096, Limits(seconds=7.9, nbytes=4.1e6)) == "needs 8 s"


def test_the_first_two_lengths_are_always_tried():
    costs = Costs(["dense"], [256, 512], [])
    assert too_much(costs, "dense", 256, Limits(0, 0)) is None
    costs.seconds.known("dense")[256] = 100.0
    assert too_much(costs, "dense", 512, Limits(0, 0)) is None


def test_a_part_of_the_whole():
    told = []
    advance = partly(told.append, 3.0)
    advance(0.5)
    assert told == [1.5]
