"""A bar over all races, with the time that is left; plain lines where stderr is no terminal.

It is drawn between measurements only: a thread that draws would be measured too.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from gpt.training.summary import duration

INTERVAL = 10.0
"""Seconds between two plain lines."""


@contextmanager
def bar(total: float) -> Iterator[Callable[[float], None]]:
    """Show how much of `total` races is done.

    Returns:
        A context that gives the function to be told of each part of a race that is done.
    """
    terminal = sys.stderr.isatty()
    columns = (TextColumn("measuring"), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    shown = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True, disable=not terminal)
    task = shown.add_task("", total=total)
    begin = told = time.monotonic()
    done = 0.0

    def advance(part: float) -> None:
        nonlocal done, told
        done += part
        now = time.monotonic()
        left = f"about {duration((now - begin) * max(0.0, total - done) / done)} left"
        shown.update(task, completed=done, description=left, refresh=True)
        if not terminal and now - told >= INTERVAL:
            told = now
            print(f"measuring: {done / total:.0%}, {left}", file=sys.stderr, flush=True)

    with shown:
        yield advance
