import time

import pytest

from gpt.config import UserError
from gpt.training.horizon import Horizon, parse_duration


def test_exactly_steps_updates():
    horizon = Horizon(3)
    horizon.start()
    seen = []
    for step in horizon:
        seen.append((step, horizon.progress(step), horizon.reached(step)))
    assert seen == [(0, pytest.approx(1 / 3), False), (1, pytest.approx(2 / 3), False), (2, 1.0, True)]


def test_a_budget_ends_by_time_and_its_last_update_is_known():
    horizon = Horizon(3, budget=0.05)
    horizon.start()
    last = []
    for step in horizon:
        time.sleep(0.01)
        assert 0 < horizon.progress(step) <= 1
        last.append(horizon.reached(step))
    assert last[-1] is True
    assert not any(last[:-1])
    assert horizon.elapsed >= 0.05


def test_how_many_updates():
    assert Horizon(7).updates(seconds=2.0) == 7
    assert Horizon(7, budget=60.0).updates(seconds=2.0) == 30
    assert Horizon(7, budget=60.0).updates(seconds=200.0) == 1, "one is made in any case"


def test_time_counts_from_the_start():
    horizon = Horizon(3, budget=3600.0)
    assert horizon.elapsed == 0
    horizon.start()
    assert 0 < horizon.elapsed < 60


def test_the_progress_of_a_budget_ends_at_one():
    horizon = Horizon(3, budget=1e-9)
    horizon.start()
    assert horizon.progress(0) == 1.0


@pytest.mark.parametrize("text, seconds", [("90s", 90), ("5min", 300), ("1.5h", 5400), ("2 min", 120)])
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["5", "min", "-1min", "0s", "5 days", "5min 3s", "", "9" * 400 + "s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UserError, match="budget: .*write it like 90s, 5min or 1.5h"):
        parse_duration(text)


def test_what_compiling_takes_of_a_budget_is_no_progress():
    horizon = Horizon(1, budget=1.0)
    horizon.start()
    time.sleep(0.3)  # compiling
    for step in horizon:
        assert horizon.progress(step) < 0.1
        break
    time.sleep(0.7)
    assert horizon.progress(1) == 1.0
    assert horizon.reached(1), "the budget ends where it ends"


def test_a_resumed_training_goes_on_where_it_was_left():
    horizon = Horizon(5)
    horizon.start(done=3, elapsed=100.0)
    assert [(step, horizon.progress(step), horizon.reached(step)) for step in horizon] == [
        (3, 0.8, False),
        (4, 1.0, True),
    ]
    assert 100.0 <= horizon.elapsed < 200.0
    assert Horizon(5).seconds_left(2.0) == 10.0
    assert horizon.seconds_left(2.0) == 4.0


def test_nothing_is_left_of_a_budget_that_is_over():
    horizon = Horizon(5, budget=60.0)
    horizon.start(done=3, elapsed=61.0)
    assert horizon.seconds_left(1.0) == 0.0
    assert Horizon(5).is_over(done=6, elapsed=0.0), "resumed with fewer steps than there were"


def test_a_resumed_budget_has_only_what_is_left_of_it():
    horizon = Horizon(5, budget=60.0)
    horizon.start(done=3, elapsed=45.0)
    assert horizon.seconds_left(1.0) == pytest.approx(15.0, abs=1)
    iter(horizon)
    assert 0.75 <= horizon.progress(3) < 0.8


@pytest.mark.parametrize(
    "budget, done, elapsed, over",
    [(None, 4, 1e9, False), (None, 5, 0.0, True), (60.0, 99, 59.9, False), (60.0, 1, 60.0, True)],
)
def test_what_is_at_its_end(budget, done, elapsed, over):
    assert Horizon(5, budget).is_over(done, elapsed) == over


def test_what_is_no_training_is_counted_apart_and_goes_on_where_a_run_is_resumed(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    horizon = Horizon(3)
    horizon.start(done=1, elapsed=50.0, asides={"evaluating": 7.0})
    with horizon.aside("evaluating"):
        now += 3
    with horizon.aside("probing"):
        now += 1
    assert horizon.asides == {"evaluating": 10.0, "probing": 1.0}
    assert horizon.elapsed == 54.0
