"""What came of a sweep, as a table for people and as a file for programs."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpt.cli.jobs import Job
from gpt.cli.script import Outcome

WIDE = 10_000
"""Columns where the output is no terminal: nothing is wrapped there."""


@dataclass(frozen=True)
class Report:
    """What came of a job; plain enough to come from another process."""

    status: str
    """done, interrupted, not run, or failed: and why."""
    outcome: Outcome = field(default_factory=dict)
    """What its task returned."""
    seconds: float | None = None
    """How long it ran; None where it did not."""


def show(jobs: Sequence[Job], reports: Mapping[int, Report]) -> None:
    """Print the table of a sweep's outcomes: whole, wrapped to the terminal where there is one."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for title in _header(jobs, reports, "time"):
        table.add_column(Text(title), overflow="fold")
    for job in jobs:
        seconds = reports[job.number].seconds
        table.add_row(*map(Text, _row(job, jobs, reports, "" if seconds is None else clock(seconds))))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def write(path: Path, jobs: Sequence[Job], reports: Mapping[int, Report]) -> None:
    """Write the table as CSV (UTF-8), times in seconds."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_header(jobs, reports, "seconds"))
        for job in jobs:
            seconds = reports[job.number].seconds
            rows.writerow(_row(job, jobs, reports, "" if seconds is None else f"{seconds:.1f}"))


def clock(seconds: float) -> str:
    """A time as a clock shows it.

    >>> clock(3725.4)
    '1:02:05'
    """
    return str(timedelta(seconds=round(seconds)))


def _header(jobs: Sequence[Job], reports: Mapping[int, Report], time: str) -> list[str]:
    return ["job", *jobs[0].differs, *_told(jobs, reports), time, "status"]


def _row(job: Job, jobs: Sequence[Job], reports: Mapping[int, Report], time: str) -> list[str]:
    report = reports[job.number]
    told = [report.outcome.get(column, "") for column in _told(jobs, reports)]
    return [str(job.number), *job.differs.values(), *told, time, report.status]


def _told(jobs: Sequence[Job], reports: Mapping[int, Report]) -> list[str]:
    """The columns of all outcomes, in the order in which they come."""
    return list(dict.fromkeys(column for job in jobs for column in reports[job.number].outcome))
