"""`python -m gpt compare`: read runs' folders, print them as a table, and leave that as a file where one is named."""

import shlex
from collections.abc import Callable
from pathlib import Path

from pydantic import Field, field_validator
from rich.text import Text

from gpt.config import Config
from gpt.files import nearby, refuse_unwritable, writing
from gpt.insight import page, terminal
from gpt.insight.compare.folders import chosen
from gpt.insight.compare.table import LEGEND, Comparison, as_csv, compared, differences, grid
from gpt.insight.compare.web import as_html
from gpt.insight.record import read

KINDS: dict[str, Callable[[Comparison], str]] = {".csv": as_csv, ".html": as_html}
"""What is written, by how the file's name ends."""


class CompareSettings(Config):
    """Which run is better? All runs in one table, the best first: the settings that differ, losses, speed, status.

    Plain words are the folders of runs, or of sweeps, whose jobs are runs; without any all of runs/ are compared. Of
    exactly two every setting that differs is listed. A folder that is damaged, or half made, is a row that says so.

    Examples:
        python -m gpt compare
        python -m gpt compare runs/one runs/two
        python -m gpt compare runs/sweep to=sweep.csv
        python -m gpt compare to=runs.html
    """

    runs: list[str] = Field(default_factory=list)
    """The folders, as plain words or as a list; empty: all in runs/."""
    to: str | None = None
    """A file to leave the table in: .csv, or .html, a page with the curves over steps, tokens and time; null: none."""
    debug: bool = False
    """Show the whole traceback of an error in place of one line."""

    @field_validator("to")
    @classmethod
    def _ends_in_a_kind(cls, value: str | None) -> str | None:
        if value is None or Path(value).suffix in KINDS:
            return value
        raise ValueError(f"expected a file whose name ends in {' or '.join(KINDS)}, got {value!r}")


def compare(settings: CompareSettings, _: Path | None) -> None:
    """Print the table, after it has been written where it shall be.

    Raises:
        UserError: a run's folder is not there, or the file cannot be written.
        RunError: the disk is full.
    """
    to = Path(settings.to) if settings.to is not None else None
    if to:
        refuse_unwritable("to", to.parent)
    comparison = compared([read(folder) for folder in chosen(settings.runs)])
    if to:
        with writing("to", to.parent):
            page.write(to, KINDS[to.suffix](comparison))
    show(comparison)
    if to:
        print(f"\nopen {shlex.quote(nearby(to))}")


def show(comparison: Comparison) -> None:
    """Print it."""
    terminal.show(grid(comparison, terminal.width()))
    if comparison.pair:
        terminal.show(Text("\nSettings that differ", "bold"), differences(comparison))
    terminal.show(Text(f"\n{LEGEND}", "dim"))
    if comparison.sorted_by:
        terminal.show(Text(comparison.sorted_by, "dim"))
