"""A signal is raised, or remembered until what must be brought to an end is."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from gpt.signals import TOGETHER, Interrupted, postponed, raised

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_is_raised(number):
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as told, raised():
        signal.raise_signal(number)
    assert told.value.number == number
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("second, later", [(signal.SIGINT, 0.0), (signal.SIGTERM, TOGETHER + 0.1)])
def test_a_postponed_signal_waits_and_a_second_one_does_not(number, second, later, monkeypatch):
    seen, now = [], [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def twice():
        with raised(), postponed() as pending:
            seen.append(pending.number)
            signal.raise_signal(number)
            seen.append(pending.number)
            now[0] += later
            signal.raise_signal(second)

    with pytest.raises(Interrupted) as told:
        twice()
    assert told.value.number == second
    assert seen == [None, number]


def test_two_signals_at_once_are_one(monkeypatch):
    with raised(), postponed() as pending:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
    assert pending.number == signal.SIGTERM


def test_after_what_was_postponed_signals_are_raised_again():
    def after():
        with raised():
            with postponed():
                pass
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        after()


def test_it_is_no_error_that_is_caught_on_the_way():
    def catching():
        with raised(), suppress(Exception):
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        catching()


def dropped():
    """What C code does with an exception that comes while it runs."""
    with suppress(Interrupted):
        signal.raise_signal(signal.SIGTERM)


class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)


def finalizing():
    """Python tells on stderr of what a finalizer raises, and goes on."""
    Finalized()


def stumbling():
    dropped()
    raise ValueError("what came of that")


@pytest.mark.parametrize("work", [dropped, stumbling, finalizing])
def test_a_signal_that_is_dropped_on_the_way_is_raised_in_the_end(work, capsys, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    with pytest.raises(Interrupted) as told, raised():
        work()
    assert told.value.number == signal.SIGTERM
    assert capsys.readouterr().err == ""
    assert sys.unraisablehook is sys.__unraisablehook__
    with raised():
        pass  # and is over


def test_another_error_of_a_finalizer_is_told(capsys, monkeypatch):
    class Failing:
        def __del__(self):
            raise ValueError("not ours")

    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    with raised():
        Failing()
    assert "ValueError: not ours" in capsys.readouterr().err


def test_a_signal_that_is_dropped_on_the_way_is_pending_from_the_start():
    def heeding():
        with raised():
            dropped()
            with postponed() as pending:
                assert pending.number == signal.SIGTERM
            raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):  # the signal has been heeded, and this is another matter
        heeding()


def test_it_comes_whole_out_of_another_process():
    told = pickle.loads(pickle.dumps(Interrupted(15, "saved")))
    assert (told.number, str(told)) == (15, "saved")


def test_a_thread_changes_nothing():
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def inside():
        with raised(), postponed() as pending:
            seen.append((pending.number, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [(None, before)]


@pytest.mark.parametrize("ignored, code", [(True, 0), (False, 7)])
def test_a_closing_terminal_is_ignored_where_nohup_says_so(ignored, code):
    program = (
        "import signal, sys\n"
        "from gpt.signals import Interrupted, raised\n"
        "try:\n"
        "    with raised(): signal.raise_signal(signal.SIGHUP)\n"
        "except Interrupted: sys.exit(7)\n"
    )

    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    done = subprocess.run([sys.executable, "-c", program], preexec_fn=ignore, env=os.environ)
    assert done.returncode == code
