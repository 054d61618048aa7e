"""A bar for long work on text; none where stderr is no terminal, or where the work is soon done."""

import sys
import time
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import (
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

PATIENCE = 1.0
"""Seconds of work before a bar is shown."""


def watched(documents: Iterable[str], doing: str) -> Iterator[str]:
    """The documents as they are, with a bar that says what is being done and how much text has passed."""
    if not sys.stderr.isatty():
        yield from documents
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn())
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task = bar.add_task(doing, total=None)
    begin = time.monotonic()
    try:
        for document in documents:
            yield document
            bar.advance(task, len(document.encode()))
            if time.monotonic() - begin > PATIENCE:
                bar.start()
    finally:
        bar.stop()
