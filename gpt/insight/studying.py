"""`python -m gpt study NAME`: run a study, print what it found, and leave its tables and pictures in a folder."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from rich.table import Table as Grid
from rich.text import Text

from gpt.config import Choice, Config, UserError
from gpt.device import choose_device, prepare_device
from gpt.files import nearby, refuse_unwritable, write_whole, writing
from gpt.insight import plot, terminal
from gpt.insight.study import Cell, Context, Findings, StudyConfig, Table
from gpt.runs import RUNS


class StudySettings(Config):
    """Reproduce a piece of theory with this code: a table and a plot for each.

    The tables are printed, and written as CSV beside the pictures, as PNG. What an earlier run of the study left in the
    folder is replaced.

    Examples:
        python -m gpt study scaling
        python -m gpt study scaling study.d_k=[16,64,256] study.keys=128
        python -m gpt study mask to=pictures
    """

    study: Annotated[StudyConfig, Choice("gpt.insight.study", "study")]
    """What is studied."""
    to: str | None = None
    """The folder for tables and pictures; null: runs/study/NAME in the checkout."""
    seed: int = Field(default=1337, ge=0, lt=1 << 63)
    """The seed of all random numbers."""
    device: str = "auto"
    """auto, cuda, cuda:1, mps or cpu."""
    debug: bool = False
    """Show the traceback of an error."""

    @property
    def folder(self) -> Path:
        """Where tables and pictures are left."""
        return RUNS / "study" / self.study.name if self.to is None else Path(self.to)


def study(settings: StudySettings, _: Path | None) -> None:
    """Run the study, and tell what it found.

    Raises:
        UserError: the folder cannot be made or written to, or `to` is empty.
    """
    if settings.to == "":
        raise UserError("to: expected a folder, got nothing")
    refuse_unwritable("to", settings.folder)
    device = choose_device(settings.device)
    prepare_device(device)
    torch.manual_seed(settings.seed)
    findings = settings.study.build().run(Context(device, settings.seed))
    pictures = write(findings, settings.folder)
    show(findings, pictures)


def write(findings: Findings, folder: Path) -> list[Path]:
    """Each table as CSV, each figure as PNG; the pictures' paths.

    Raises:
        UserError: a file cannot be written.
        RunError: the disk is full.
    """
    with writing("to", folder):
        for name, table in findings.tables.items():
            write_whole(folder / f"{name}.csv", as_csv(table))
        pictures = {folder / f"{name}.png": figure for name, figure in findings.figures.items()}
        for path, figure in pictures.items():
            plot.save(figure, path)
    return list(pictures)


def as_csv(table: Table) -> str:
    r"""Comma-separated values under the names of their columns, numbers in full.

    >>> as_csv(Table("t", ["d_k", "mean"], [[16, 0.1], [32, None]]))
    'd_k,mean\n16,0.1\n32,\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
    return text.getvalue()


def show(findings: Findings, pictures: Sequence[Path]) -> None:
    """Print tables, sentences, and where the pictures are."""
    for table in findings.tables.values():
        terminal.show(Text(table.title, "bold"), grid(table), Text())
    for sentence in findings.sentences:
        said = Grid.grid(padding=(0, 1, 0, 0))
        said.add_row(Text("·", "dim"), Text(sentence))
        terminal.show(said)
    print()
    for path in pictures:
        print(f"picture: {nearby(path)}")


def grid(table: Table) -> Grid:
    """A table for the terminal; columns of numbers stand to the right."""
    made = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, column in enumerate(table.columns):
        words = any(isinstance(row[index], str) for row in table.rows)
        made.add_column(column, justify="left" if words else "right")
    for row in table.rows:
        made.add_row(*(Text(shown(cell)) for cell in row))
    return made


def shown(cell: Cell) -> str:
    """A cell as it is printed.

    >>> [shown(cell) for cell in (None, "rope", 32768, 0.25, 1234.5678, 1.5e-7)]
    ['', 'rope', '32,768', '0.25', '1,235', '1.5e-07']
    """
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell
