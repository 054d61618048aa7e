"""Runs as rows: where they differ, what they came to, how fast, and whether they are done."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from gpt.config import one_line
from gpt.insight.compare.difference import Flat, cell, differing, flat, not_alike, typed_as
from gpt.insight.record import Record
from gpt.training.summary import duration

GAP = 2
"""Spaces between two columns in the terminal."""

COMPUTED = "computed"
"""The column, among those of settings, of what computed a run."""

COUNTED_APART = ("tokenizer", "dataset")
"""Parts of the settings where runs whose losses cannot be compared differ: a token is not the same amount of text."""


BITS = "validation_bits_per_byte"
"""The column of metrics.csv that compares across tokenizers."""


class Measure(NamedTuple):
    """What is told of each run besides its settings."""

    key: str
    """In a CSV file."""
    label: str
    """For people."""
    of: Callable[[Record], float | None]
    text: Callable[[float], str]
    """How people read it."""
    roomy: bool = False
    """Whether only a file or a page has room for it."""


MEASURES = (
    Measure("validation_loss", "loss", lambda run: run.at_best("validation_loss"), "{:.4f}".format),
    Measure(BITS, "bits/byte", lambda run: run.at_best(BITS), "{:.4f}".format),
    Measure("step", "at step", lambda run: run.at_best("step"), "{:,.0f}".format, roomy=True),
    Measure("loss", "training loss", lambda run: run.last("loss"), "{:.4f}".format, roomy=True),
    Measure("tokens_per_second", "tokens/s", lambda run: run.median("tokens_per_second"), "{:,.0f}".format),
    Measure("elapsed", "time", lambda run: run.seconds, duration),
)  # fmt: skip
"""validation loss: the lowest, in nats per token; bits per byte, and the step, of the same weights."""

LEGEND = (
    "loss: the lowest on the validation split, in nats per token; bits/byte: of the same weights, which sample.py "
    "takes; tokens/s: the median; time: all of it, in which the run evaluated and compiled too."
)


@dataclass(frozen=True)
class Comparison:
    """Runs beside one another, the best first."""

    runs: Sequence[Record]
    settings: Sequence[Flat]
    """Of each run."""
    paths: Sequence[str]
    """Of the settings that tell them apart."""
    by_bits: bool
    """Whether they are sorted by bits per byte, as their losses are not of the same tokens."""
    edited: bool = False
    """Whether that is so although their settings of text and tokenizer are the same."""

    @property
    def sorted_by(self) -> str:
        """How, in a sentence; empty where losses say it."""
        why = "the text was edited between these runs" if self.edited else "tokenizers or texts differ"
        return f"sorted by bits/byte: {why}, so that the losses are not of the same tokens" if self.by_bits else ""

    @property
    def pair(self) -> list[tuple[str, str, str]]:
        """Of exactly two runs the settings that differ, each with its two values, key by key; else nothing."""
        if len(self.runs) != 2 or not all(self.settings):
            return []
        one, other = self.settings
        return [(typed_as(path), cell(one, path), cell(other, path)) for path in not_alike(self.settings)]


def compared(runs: Sequence[Record]) -> Comparison:
    """The runs, sorted; those that have no loss come last."""
    whole = [flat(run.settings) for run in runs if run.settings]
    told_apart = any(path.split(".")[0] in COUNTED_APART for path in not_alike(whole))
    edited = not told_apart and len(texts(runs)) > 1
    by_bits = told_apart or edited
    column = BITS if by_bits else "validation_loss"

    def place(run: Record) -> tuple[bool, float, str]:
        value = run.at_best(column)
        return value is None, value or 0.0, run.name

    ordered = sorted(runs, key=place)
    settings = [{**flat(run.settings), **computed(run, runs)} for run in ordered]
    # What is damaged says nothing of what tells the others apart.
    checked = [one for one, run in zip(settings, ordered, strict=True) if run.checked] or whole
    return Comparison(ordered, settings, differing(checked), by_bits, edited)


def computed(run: Record, runs: Sequence[Record]) -> Flat:
    """What computed a run, by which speeds differ, where that is not the same for all of them."""
    kinds = {run.computed for run in runs if run.computed}
    return {COMPUTED: run.computed} if len(kinds) > 1 and run.settings else {}


def texts(runs: Sequence[Record]) -> set[str]:
    """What the runs know their tokens by, which depends on what stood in the files.

    A run that took another's tokenizer knows the same tokens by another fingerprint, so it says nothing here.
    """
    return {run.state.data for run in runs if run.state and run.settings.get("init") is None}


def as_csv(comparison: Comparison) -> str:
    """The table as comma-separated values, numbers in full, times in seconds."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["run", *(measure.key for measure in MEASURES), "status", *map(typed_as, comparison.paths)])
    for run, settings in zip(comparison.runs, comparison.settings, strict=True):
        cells = [cell(settings, path) for path in comparison.paths]
        rows.writerow([run.name, *(measure.of(run) for measure in MEASURES), run.status, *cells])
    return text.getvalue()


def header(comparison: Comparison) -> list[str]:
    """The columns that people read; of two runs the settings stand in a table of their own."""
    paths = [] if comparison.pair else map(typed_as, comparison.paths)
    return ["run", *(measure.label for measure in MEASURES), "status", *paths]


def rows(comparison: Comparison) -> Iterator[list[str]]:
    """A text for each of the `header`, for each run."""
    for run, settings in zip(comparison.runs, comparison.settings, strict=True):
        cells = [] if comparison.pair else [cell(settings, path) for path in comparison.paths]
        yield [run.name, *(told(measure, run) for measure in MEASURES), run.status, *cells]


def told(measure: Measure, run: Record) -> str:
    """What people read of a run; nothing where there is nothing."""
    value = measure.of(run)
    return "" if value is None else measure.text(value)


def grid(comparison: Comparison, width: int) -> Table:
    """The table for a terminal of so many columns, without the measures that only a file or a page has room for.

    Where the settings do not fit each in its own column, a run tells of them in one.
    """
    roomy = {measure.label for measure in MEASURES if measure.roomy}
    names = header(comparison)
    kept = [i for i, name in enumerate(names) if name not in roomy]
    lines = [[one_line(row[i]) for i in kept] for row in [names, *rows(comparison)]]
    settings = len(names) - len(MEASURES) - 2
    if settings > 1 and sum(max(map(len, column)) + GAP for column in zip(*lines, strict=True)) > width:
        lines = [in_one(lines[0], line, settings) for line in lines]
    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for name, cells in zip(lines[0], zip(*lines, strict=True), strict=True):
        number = name in {measure.label for measure in MEASURES}
        whole = number or (name == "run" and max(map(len, cells)) < width / 2)  # to be copied
        made.add_column(Text(name), justify="right" if number else "left", no_wrap=whole, overflow="fold")
    for line in lines[1:]:
        made.add_row(*map(Text, line))
    return made


def plain(text: str) -> Text:
    """A cell: names of folders, and words out of files that anybody wrote, are shown and not obeyed."""
    return Text(one_line(text))


def in_one(names: Sequence[str], line: Sequence[str], many: int) -> list[str]:
    """A line of a table whose so many settings, which come last, stand in one column.

    >>> in_one(["run", "loss", "seed", "clip"], ["a", "3.5", "7", ""], 2)
    ['a', '3.5', 'seed=7']
    """
    told = [f"{name}={value}" for name, value in zip(names[-many:], line[-many:], strict=True) if value]
    return [*line[:-many], "settings" if line is names else " ".join(told)]


def differences(comparison: Comparison) -> Table:
    """Of two runs, the settings that differ, for the terminal."""
    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for name in ("setting", *(run.name for run in comparison.runs)):
        made.add_column(plain(name), overflow="fold")
    for path, one, other in comparison.pair:
        made.add_row(*map(plain, (path, one or "-", other or "-")))
    return made
