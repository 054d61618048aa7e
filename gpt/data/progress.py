"""A bar for long work on text, with the time that it will take; plain lines where stderr is no terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from gpt.data.dataset import Document

PATIENCE = 1.0
"""Seconds of work before a bar is shown."""

REDRAW = 0.1
"""Seconds between two states of a bar: telling it of every word would cost more than the work."""

INTERVAL = 10.0
"""Seconds between two plain lines."""

Advance = Callable[..., None]
"""Is told of each part that is done: its bytes, and as `total` a better guess at what there is in all."""


@contextmanager
def bar(doing: str, total: int | None = None) -> Iterator[Advance]:
    """Show how far some work is.

    Args:
        doing: what is being done, in a word or two.
        total: about how many bytes there are to do; None where that is not known.

    Returns:
        A context that gives the function to be told.
    """
    terminal = sys.stderr.isatty()
    shown = Progress(*_columns(total is not None), console=Console(stderr=True), transient=True, disable=not terminal)
    task = shown.add_task(doing, total=total)
    done, begin = 0, time.monotonic()
    due = begin + (PATIENCE if terminal else INTERVAL)

    def advance(size: int, total: int | None = total) -> None:
        nonlocal done, due
        done += size
        if (now := time.monotonic()) < due:
            return
        due = now + (REDRAW if terminal else INTERVAL)
        if terminal:
            shown.start()
            shown.update(task, completed=done, total=total)
        else:
            print(f"{doing}: {decimal(done)}{f' of {decimal(total)}' if total else ''}", file=sys.stderr, flush=True)

    try:
        yield advance
    finally:
        shown.stop()


def _columns(known: bool) -> list[ProgressColumn]:
    """What a bar shows, with and without a known end."""
    begin = [SpinnerColumn(), TextColumn("{task.description}")]
    amount = [DownloadColumn(), TransferSpeedColumn()]
    return [*begin, BarColumn(), *amount, TimeRemainingColumn()] if known else [*begin, *amount, TimeElapsedColumn()]


def watched(documents: Iterable[Document], doing: str, total: int | None = None) -> Iterator[Document]:
    """The documents as they are, with a bar that says how much of their text was read.

    Args:
        documents: to be read one after the other.
        doing: what is being done, in a word or two.
        total: about how many bytes of text there are; None where that is not known.
    """
    with bar(doing, total) as advance:
        for document in documents:
            yield _counted(document, advance)


def _counted(document: Document, advance: Advance) -> Iterator[str]:
    for chunk in document:
        yield chunk
        advance(len(chunk.encode()))
