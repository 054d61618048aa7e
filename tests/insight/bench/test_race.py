import os
from itertools import count

import pytest
import torch

from gpt.contention import Reading
from gpt.insight.bench.race import Contender, Entry, Race, Rules, Standing, measure, run, undisturbed

CPU = torch.device("cpu")
CORES = os.cpu_count() or 1


def loads(*shares: float):
    """Readings such that others use the given shares of the processor, one measurement of a second after the other."""
    readings = []
    for number, share in enumerate(shares):
        readings += [Reading(number, 0.0, 100.0), Reading(number + 1, 0.0, 100.0 + share * CORES)]
    return iter(readings).__next__


def contender(name: str, log: list[str], tokens: int = 5) -> Contender:
    def work() -> int:
        log.append(name)
        return tokens

    return Contender(Entry(name, "fp32"), work)


def test_each_repeat_begins_with_the_next_contender():
    log: list[str] = []
    race = Race("writing", [contender(name, log) for name in "abc"], lambda limits: {})
    quiet = (Reading(float(n), 0.0, 0.0) for n in count()).__next__
    outcome = run(race, Rules(repeats=4, seconds=1e-9, redos=0, device=CPU), lambda part: None, quiet)
    assert "".join(log) == "abc" + "abc" + "bca" + "cab" + "abc"  # the first round does not count
    assert [standing.entry.name for standing in outcome.standings] == ["a", "b", "c"]
    assert [len(standing.speeds) for standing in outcome.standings] == [4, 4, 4]
    assert [standing.disturbed for standing in outcome.standings] == [0, 0, 0]


def test_the_parts_that_are_told_add_up_to_one():
    parts: list[float] = []
    race = Race("writing", [contender(name, []) for name in "ab"], lambda limits: {})
    run(race, Rules(repeats=3, seconds=1e-9, redos=0, device=CPU), parts.append)
    assert parts == [pytest.approx(1 / 8)] * 8


def test_a_disturbed_measurement_is_redone_until_it_is_not():
    log: list[str] = []
    rules = Rules(repeats=1, seconds=1e-9, redos=3, device=CPU)
    _, disturbed = undisturbed(contender("a", log), rules, loads(0.5, 0.04, 0.02))
    assert (len(log), disturbed) == (3, False)


def test_after_the_last_redo_the_least_disturbed_is_kept_and_counted():
    tokens = iter([10**9, 1, 10**9])  # the second measurement is the slow one, and the least disturbed
    rules = Rules(repeats=1, seconds=1e-9, redos=2, device=CPU)
    speed, disturbed = undisturbed(Contender(Entry("a", "fp32"), tokens.__next__), rules, loads(0.5, 0.1, 0.2))
    assert disturbed
    assert speed < 10**8
    assert next(tokens, None) is None


def test_disturbed_repeats_are_told_of_each_contender():
    race = Race("writing", [contender("a", []), contender("b", [])], lambda limits: {})
    rules = Rules(repeats=2, seconds=1e-9, redos=0, device=CPU)
    # a, b, then b, a
    outcome = run(race, rules, lambda part: None, loads(0.9, 0.0, 0.9, 0.9))
    assert [standing.disturbed for standing in outcome.standings] == [2, 1]


def test_where_the_load_is_not_known_nothing_is_redone():
    log: list[str] = []
    rules = Rules(repeats=1, seconds=1e-9, redos=3, device=CPU)
    assert undisturbed(contender("a", log), rules, lambda: Reading(0, 0, None))[1] is False
    assert len(log) == 1


def test_a_measurement_is_of_whole_parts_and_as_long_as_asked_for():
    log: list[str] = []
    measure(contender("a", log), Rules(repeats=1, seconds=0.02, redos=0, device=CPU))
    assert len(log) > 1
    log.clear()
    measure(contender("a", log), Rules(repeats=1, seconds=0.0, redos=0, device=CPU))
    assert len(log) == 1


def test_the_speed_is_the_median():
    assert Standing(Entry("a", "fp32"), [3.0, 100.0, 5.0]).speed == 5.0
