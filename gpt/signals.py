"""Signals that ask a program to end: Ctrl-C, SIGTERM, Slurm's SIGUSR1, a terminal that closes.

Each becomes an `Interrupted`: raised where the program stands, or, while something must be brought to a good end first,
remembered.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from gpt.launch import is_launched

NAMES = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")
"""Windows has the first two."""

TOGETHER = 1.0
"""Seconds in which two signals are one wish."""


class Interrupted(BaseException):
    """A signal asked the program to end; no error, so `except Exception` does not hold it up.

    Args:
        number: of the signal; the program's exit code is 128 more.
        message: what a person is told, in one line.
    """

    def __init__(self, number: int, message: str = "interrupted") -> None:
        super().__init__(number, message)  # all that it is made of, so that it comes whole out of another process
        self.number = number
        self.message = message

    def __str__(self) -> str:
        return self.message


@dataclass
class Pending:
    """What came while `postponed`."""

    number: int | None = None
    """Of the signal that came; None so far."""
    since: float = 0.0
    """When it came."""


_unheard: list[int] = []
"""The signals that were raised, and may have ended nothing."""


@contextmanager
def raised() -> Iterator[None]:
    """Within, a signal raises `Interrupted` at once.

    C code, as that of safetensors, may drop what is raised while it runs, and Python does where it is in a finalizer.
    So whatever error comes after a signal becomes that `Interrupted`; where none does, it is remembered by the next
    `postponed`, or raised in the end.
    """

    def interrupt(number: int, _: FrameType | None) -> None:
        _unheard.append(number)
        raise Interrupted(number)

    _unheard.clear()
    with _handled(interrupt), _undropped():
        try:
            yield
        except Exception as error:
            if _unheard:
                raise Interrupted(_unheard[0]) from error
            raise
        if _unheard:
            raise Interrupted(_unheard[0])


@contextmanager
def postponed() -> Iterator[Pending]:
    """Within, a signal is remembered; a second one raises `Interrupted` at once, for whoever cannot wait.

    Not one that follows within `TOGETHER`, unless it is Ctrl-C again: systemd ends a session by two. And torchrun hands
    on the Ctrl-C that its processes had from the terminal already.
    """
    pending = Pending(_unheard[0], time.monotonic()) if _unheard else Pending()
    _unheard.clear()

    def remember(number: int, _: FrameType | None) -> None:
        if pending.number is None:
            pending.number, pending.since = number, time.monotonic()
        elif (number == signal.SIGINT and not is_launched()) or time.monotonic() - pending.since > TOGETHER:
            raise Interrupted(number)

    with _handled(remember):
        yield pending


@contextmanager
def _undropped() -> Iterator[None]:
    """Within, nothing is printed of an `Interrupted` that Python drops: it is raised later."""
    before = sys.unraisablehook

    def tell(dropped: Any) -> None:
        if not isinstance(dropped.exc_value, Interrupted):
            before(dropped)

    sys.unraisablehook = tell
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def _handled(handler: Any) -> Iterator[None]:
    """Have `handler` called for the signals; only a main thread can, and elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    # A closing terminal is to be ignored where nohup says so.
    caught = [n for n in numbers if not (n == getattr(signal, "SIGHUP", None) and before[n] is signal.SIG_IGN)]
    for number in caught:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, before[number])
