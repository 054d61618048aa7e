"""Studies: an experiment that reproduces a piece of theory with this code; the contract of a study variant.

A study measures, and gives what it found as plain data: tables, figures, sentences. It prints nothing and writes
nothing; `python -m gpt study NAME` does that.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from matplotlib.figure import Figure

from gpt.config import Variant
from gpt.insight.bench.progress import bar

Cell = str | int | float | None
"""What stands in a table: None is nothing. A CSV holds a number in full, the terminal shows four digits of it."""

Progress = Callable[[float], AbstractContextManager[Callable[[float], None]]]
"""Given the amount of work in all, in any unit, a context whose function is told of each part that is done."""


@dataclass(frozen=True)
class Context:
    """What a study is run with."""

    device: torch.device
    """Where to compute."""
    seed: int
    """What random numbers are drawn from: the same seed gives the same findings, but for times."""
    progress: Progress = bar
    """Shows how much is done, and the time that is left; it is drawn only when told, so no measurement is disturbed."""


@dataclass(frozen=True)
class Table:
    """Rows of one length under the names of their columns."""

    title: str
    columns: Sequence[str]
    """Names with their units: "seconds", "entropy (bits)"."""
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: a row of {len(row)} under {len(self.columns)} columns: {list(row)}")


@dataclass(frozen=True)
class Findings:
    """What a study found."""

    tables: Mapping[str, Table]
    """By the name of the CSV file that it becomes, without .csv."""
    figures: Mapping[str, Figure]
    """By the name of the PNG file that it becomes, without .png; made by `gpt.insight.plot`."""
    sentences: Sequence[str] = field(default=())
    """What was found, in plain words, with its numbers."""


class Study:
    """An experiment, ready to be run."""

    def run(self, context: Context) -> Findings:
        """Measure; the findings."""
        raise NotImplementedError


class StudyConfig(Variant):
    """A study's configuration: the sizes of its experiment."""

    def build(self) -> Study:
        """The study."""
        raise NotImplementedError
