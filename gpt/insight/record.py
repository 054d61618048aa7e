"""What a run's folder tells of it, whoever wrote it and however far it came: read without trust, and never refused."""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gpt import checkpoint
from gpt.checkpoint import State
from gpt.config import UserError, parse
from gpt.files import is_held, nearby
from gpt.run_folder import METRICS, read_metrics, read_settings
from gpt.run_notes import Sample, read_samples, read_summary
from gpt.runs import CONFIG
from gpt.training.settings import TrainSettings
from gpt.training.summary import duration

T = TypeVar("T")

Columns = Mapping[str, np.ndarray]
"""Of metrics.csv, by name: a number for each row, NaN where there is none."""


@dataclass(frozen=True)
class Record:
    """A run, as its folder tells of it."""

    folder: Path
    settings: Mapping[str, Any]
    """As plain data; empty where they cannot be read."""
    checked: bool
    """Whether they are such as train.py takes; those that were not there then are among them."""
    columns: Columns
    """What was measured."""
    samples: Sequence[Sample]
    """What it wrote on its way."""
    summary: Mapping[str, str]
    """What it was told to do, on what, and where."""
    state: State | None
    """Of the last checkpoint; None: there is none."""
    status: str
    """finished, running, unfinished, no checkpoint, half made, or damaged: and how far, or why."""

    @property
    def name(self) -> str:
        """The folder as it is typed."""
        return nearby(self.folder)

    @property
    def best(self) -> int | None:
        """The row of the lowest validation loss; None where none was evaluated."""
        losses = self.columns["validation_loss"]
        there = np.flatnonzero(np.isfinite(losses))
        return int(there[np.argmin(losses[there])]) if there.size else None

    def at_best(self, column: str) -> float | None:
        """What a column holds in the row of the lowest validation loss."""
        return None if self.best is None else finite(self.columns[column][self.best])

    def last(self, column: str) -> float | None:
        """The last number in a column."""
        numbers = self.columns[column][np.isfinite(self.columns[column])]
        return float(numbers[-1]) if numbers.size else None

    def median(self, column: str) -> float | None:
        """Of all numbers in a column."""
        numbers = self.columns[column][np.isfinite(self.columns[column])]
        return float(np.median(numbers)) if numbers.size else None

    @property
    def computed(self) -> str:
        """On what kind of device the last checkpoint was, and whether compiled; empty where there is none."""
        return f"{self.state.device}{', compiled' if self.state.compiled else ''}" if self.state else ""

    @property
    def seconds(self) -> float | None:
        """How long it trained, evaluations and compilation included."""
        return self.last("elapsed") if self.state is None else max(self.last("elapsed") or 0, self.state.elapsed)


def read(folder: Path) -> Record:
    """The run in a folder; what is wrong with it is its status."""
    troubles: list[str] = []

    def tried(do: Callable[[], T]) -> T | None:
        try:
            return do()
        except (UserError, OSError) as error:
            what = str(error).removeprefix("run: ").removeprefix(f"{folder}/").partition("; ")[0]
            troubles.append(f"damaged: {what}")
            return None

    if not os.path.lexists(folder / CONFIG):
        troubles.append("half made: no configuration")
    stored = {} if troubles else tried(lambda: read_settings(folder)) or {}
    settings = tried(lambda: parse(TrainSettings, stored)) if stored else None
    rows = tried(lambda: read_metrics(folder, until=sys.maxsize)) or []
    samples = tried(lambda: read_samples(folder, until=sys.maxsize)) or []
    summary = tried(lambda: read_summary(folder)) or {}
    points = tried(lambda: checkpoint.find(folder / "checkpoints")) or []
    held = tried(lambda: is_held(folder)) or False
    columns, state = as_columns(rows), points[-1].state if points else None
    status = troubles[0] if troubles or not settings else status_of(settings, columns, state, held)
    known = settings.model_dump() if settings else stored
    return Record(folder, known, settings is not None, columns, samples, summary, state, status)


def status_of(settings: TrainSettings, columns: Columns, state: State | None, held: bool) -> str:
    """How far a run is.

    Args:
        settings: its own.
        columns: of its metrics.
        state: of its last checkpoint.
        held: whether a process trains it.
    """
    if state and settings.horizon().is_over(state.step, state.elapsed):
        return "finished"
    steps, seconds = columns["step"], columns["elapsed"]
    step, elapsed = (state.step, state.elapsed) if state else (0, 0.0)
    if held and steps.size:
        step, elapsed = int(steps[-1]), float(seconds[-1])
    far = f"{duration(elapsed)} of {settings.budget}" if settings.budget else f"step {step:,} of {settings.steps:,}"
    if held:
        return f"running: {far}"
    return f"unfinished: {far}" if state else "no checkpoint"


def as_columns(rows: Sequence[Mapping[str, str]]) -> Columns:
    """The rows of metrics.csv as columns."""
    return {name: np.array([number(row.get(name)) for row in rows], float) for name in METRICS}


def number(text: str | None) -> float:
    """A number out of a file that anybody wrote; NaN where it is none.

    >>> number("1e3"), number(""), number("x")
    (1000.0, nan, nan)
    """
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def finite(value: float) -> float | None:
    """A number that JSON has; None for others."""
    return float(value) if math.isfinite(value) else None
