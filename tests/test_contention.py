import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpt.contention import STAT, Reading, busy_seconds, foreign_share, read

FIRST_LINE = "cpu  100 20 3000 99999 77777 400 50 6 8888 9999\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def test_work_is_all_but_idle_waiting_and_what_guests_repeat(tmp_path):
    """user 100, nice 20, system 3000, irq 400, softirq 50, steal 6: 3576 ticks of a hundredth of a second."""
    (tmp_path / "stat").write_text(FIRST_LINE)
    assert busy_seconds(tmp_path / "stat") == pytest.approx(35.76)


def test_a_system_that_does_not_tell(tmp_path):
    assert busy_seconds(tmp_path / "stat") is None
    assert foreign_share(Reading(0, 0, None), Reading(1, 1, None), cores=2) is None


def test_too_short_a_time_tells_nothing():
    """Two ticks in 3 ms would be more than all of both cores."""
    assert foreign_share(Reading(0, 0, 5), Reading(0.003, 0, 5.02), cores=2) is None


def test_the_share_is_of_all_cores():
    """4 cores for 10 s are 40 s; of the 12 s worked, 9 are ours."""
    assert foreign_share(Reading(0, 1, 100), Reading(10, 10, 112), cores=4) == pytest.approx(3 / 40)


def test_ticks_that_come_late_are_no_negative_share():
    assert foreign_share(Reading(0, 0, 5), Reading(1, 0.5, 5), cores=2) == 0


@pytest.mark.skipif(not Path(STAT).exists(), reason="there is no /proc/stat here")
def test_our_own_work_is_counted_as_ours_and_as_the_machines():
    before, begin = read(), time.process_time()  # what is ours has children too, which earlier tests had
    while time.process_time() - begin < 0.2:
        sum(range(10_000))
    after = read()
    assert after.own - before.own >= 0.2
    assert before.machine is not None
    assert after.machine is not None
    assert after.machine - before.machine >= 0.15  # in ticks of a hundredth of a second


def test_the_work_of_a_process_that_has_ended_is_ours():
    code = "import time; begin = time.process_time()\nwhile time.process_time() - begin < 0.1: sum(range(10_000))"
    before = read()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert read().own - before.own >= 0.1
