"""The folder of a run that is being trained: configuration, metrics, checkpoints.

    config.yaml   metrics.csv   samples.jsonl   summary.json   checkpoints/step_00000200/...

One process at a time writes to it. The folder may be moved or sent; nothing in it names a path outside of it that
sampling needs, and nothing in it is executed.
"""

import csv
import io
import os
import shutil
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from safetensors import SafetensorError
from torch import Tensor

from gpt import checkpoint
from gpt.checkpoint import REMOVING, SAVING, Checkpoint, State
from gpt.config import RunError, UserError, shown
from gpt.data.tokens import Prepared
from gpt.files import (
    LARGEST_SETTINGS,
    asides,
    hold,
    is_deep,
    is_full,
    is_own,
    nearby,
    write_whole,
)
from gpt.run_notes import SAMPLES, SUMMARY, Sample, append_sample, cut_samples, read_samples, write_summary
from gpt.runs import CONFIG, RUNS

TABLE = "metrics.csv"
LONGEST_ROW = 1 << 16
"""Characters of a line of metrics.csv; a run's have about 2^7."""
PAUSES = (1.0, 4.0)
"""Seconds before a checkpoint that could not be written is tried again."""
METRICS = (
    "step", "tokens", "elapsed", "lr", "loss", "grad_norm", "tokens_per_second", "mfu", "memory", "skipped",
    "spikes", "validation_loss", "validation_bits_per_byte",
)  # fmt: skip
"""The columns of metrics.csv; times in seconds, losses in nats per token, mfu the share of the best matrix products,
memory the most bytes so far."""


class RunFolder:
    """The folder of a run that is being trained; this process alone has it.

    Args:
        folder: a new, empty one, or that of a run to go on with.

    Raises:
        UserError: another process trains in it, or a checkpoint or the metrics in it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {}
        self.sample: Sample | None = None
        """The last one that was kept."""
        self._rows: list[Mapping[str, float]] = []  # of metrics.csv, not yet written
        self._hold()
        for name in ("checkpoints", "wandb", "wandb/wandb", "tensorboard"):
            if (folder / name).is_symlink():
                raise UserError(f"{folder / name}: this is a link out of the run's folder; put what it names here")
        self._checkpoints = checkpoint.find(folder / "checkpoints")
        read_metrics(folder, until=0)  # while nothing is changed yet
        read_samples(folder, until=0)

    @property
    def best(self) -> Checkpoint | None:
        """The checkpoint of the lowest validation loss; None where none was evaluated."""
        return checkpoint.best(self._checkpoints)

    @property
    def last(self) -> Checkpoint | None:
        """The last checkpoint; None so far."""
        return self._checkpoints[-1] if self._checkpoints else None

    def start(
        self, settings: Mapping[str, Any], data: Prepared, keep: int, summary: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Write the configuration, and remove the metrics of what a killed process did after its last checkpoint.

        Args:
            settings: of the run, as plain data.
            data: what it trains on.
            keep: how many of the newest checkpoints are kept, besides the best one.
            summary: what it will do, and where, as label and text.
        """
        self.settings, self._data, self._keep, self._summary = dict(settings), data, keep, dict(summary)
        with self._told():
            self._begin()

    def _begin_where_removed(self) -> None:
        """Make anew what somebody removed: what is trained here is not lost with it."""
        self._checkpoints = [point for point in self._checkpoints if point.folder.exists()]
        if not self.folder.is_dir():
            warnings.warn(f"{self.folder} was removed, with all that it held; it is made anew", stacklevel=2)
            self.folder.mkdir(parents=True)
            self._hold()
        if not (self.folder / CONFIG).exists():
            self._begin()

    def _begin(self) -> None:
        for aside in (self.folder / "checkpoints").glob(".*-*"):
            if aside.name.startswith((SAVING, REMOVING)):
                shutil.rmtree(aside, ignore_errors=True)
        for name in (CONFIG, TABLE, SAMPLES, SUMMARY):
            for aside in asides(self.folder / name):
                aside.unlink(missing_ok=True)
        write_whole(self.folder / CONFIG, yaml.safe_dump(self.settings, sort_keys=False, allow_unicode=True))
        table = io.StringIO()
        writer = csv.DictWriter(table, METRICS, lineterminator="\n")
        writer.writeheader()
        done = self.last.state.step if self.last else 0
        writer.writerows(read_metrics(self.folder, until=done))
        write_whole(self.folder / TABLE, table.getvalue())
        cut_samples(self.folder, until=done)
        if self._summary:
            write_summary(self.folder, self._summary)

    def log(self, metrics: Mapping[str, float]) -> None:
        """Append a row to metrics.csv; metrics that are not there stay empty.

        Rows that cannot be written now are written with later ones.
        """
        self._rows.append(metrics)
        self._write_rows(first=len(self._rows) == 1)

    def keep_sample(self, step: int, text: str) -> None:
        """Append what the model writes after so many updates; where that cannot be, it is told and left out."""
        self.sample = Sample(step, text)
        try:
            append_sample(self.folder, self.sample)
        except OSError as error:
            path = self.folder / SAMPLES
            warnings.warn(f"{path} cannot be written ({error.strerror}); a sample is left out", stacklevel=2)

    def _write_rows(self, first: bool = False) -> None:
        """Append the rows that are not yet written; that it cannot be done is told of the first."""
        path = self.folder / TABLE
        try:
            whole = path.stat().st_size
            with _undone(path, whole), path.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, METRICS, lineterminator="\n").writerows(self._rows)
            self._rows.clear()
        except OSError as error:
            if first:
                warnings.warn(f"{path} cannot be written ({error.strerror}); what it lacks follows later", stacklevel=2)

    def save(
        self, weights: Mapping[str, Tensor], optimizer: Mapping[str, Tensor], state: Mapping[str, Any]
    ) -> Checkpoint:
        """Write a checkpoint, and remove those that are not to be kept.

        What fails is tried again after each of `PAUSES`, since a disk may fill up, or a network drive be away, for a
        while only.

        Args:
            weights: the model's, by name.
            optimizer: the optimizer's state, by name.
            state: the fields of `State` but `data`.

        Raises:
            RunError: it could not be written; the checkpoints that there are stay as they are.
        """
        parent, whole = self.folder / "checkpoints", State(**state, data=self._data.fingerprint)
        pauses = iter(PAUSES)
        while True:
            if self._rows:
                self._write_rows()  # before the checkpoint, since who goes on from there writes only later ones
            try:
                with self._told():
                    self._begin_where_removed()
                    written = checkpoint.write(parent, weights, optimizer, self.settings, self._data.tokenizer, whole)
                break
            except RunError:
                if (pause := next(pauses, None)) is None:
                    raise
                time.sleep(pause)
        self._checkpoints.append(written)
        try:
            self._checkpoints = checkpoint.prune(self._checkpoints, self._keep)
        except OSError as error:  # a full disk may have no room to move them aside
            warnings.warn(f"{parent}: older checkpoints stay for now: {error.strerror}", stacklevel=2)
        return written

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Have what goes wrong with the disk told in one line."""
        try:
            yield
        except (OSError, SafetensorError) as error:
            what = "no room is left on the disk" if is_full(error) else f"cannot be written to ({error})"
            kept = f"its last checkpoint is {self.last.folder.name}" if self.last else "it has no checkpoint yet"
            way_on = f"mend that, then go on with resume={nearby(self.folder)}: {kept}"
            raise RunError(f"{self.folder}: {what}; {way_on}") from None

    def _hold(self) -> None:
        try:
            descriptor = hold(self.folder)
        except BlockingIOError:
            raise UserError(f"{self.folder}: another process trains in it; wait, end it, or start a new run") from None
        except OSError as error:
            raise UserError(f"{self.folder}: cannot be opened: {error.strerror}; name the folder of a run") from None
        if descriptor is not None:
            weakref.finalize(self, os.close, descriptor)


class Elsewhere(RunFolder):
    """What a process has of a run whose folder another one writes: it reports nothing, and saves nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._checkpoints = []

    def start(
        self, settings: Mapping[str, Any], data: Prepared, keep: int, summary: Sequence[tuple[str, str]] = ()
    ) -> None:
        """The other one does."""

    def log(self, metrics: Mapping[str, float]) -> None:
        """The other one does."""

    def keep_sample(self, step: int, text: str) -> None:
        """The other one does."""


def read_settings(folder: Path) -> dict[str, Any]:
    """The content of a run's config.yaml, not yet checked.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    file = folder / CONFIG
    try:
        if not is_own(file):
            there = "is no folder" if folder.exists() else "is not there"
            what = "is no run's folder: it has no config.yaml" if folder.is_dir() else there
            raise UserError(f"{folder} {what}; name the folder of a run: those of this checkout are in {RUNS}")
        if file.stat().st_size > LARGEST_SETTINGS:
            raise UserError(f"{file} is no run's configuration: it is too large; name another run")
        content = yaml.load(file.read_bytes(), PlainLoader)
        if is_deep(content):
            raise RecursionError
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}; name the folder of a run") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError):
        raise UserError(f"{file}: this is no YAML of settings, so the file is damaged; name another run") from None
    if not isinstance(content, dict):
        raise UserError(f"{file}: settings are expected, so the file is damaged; name another run")
    return {key if isinstance(key, str) else shown(key): value for key, value in content.items()}


class PlainLoader(yaml.SafeLoader):
    """YAML as a run's configuration has it: no tags, and no names, by which a few lines become more than memory has."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node.

        Raises:
            YAMLError: it has a tag or a name, or is the name of another.
        """
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.anchor or getattr(event, "tag", None):
            raise yaml.MarkedYAMLError(problem="a tag or a name", problem_mark=event.start_mark)
        return super().compose_node(parent, index)


def read_metrics(folder: Path, until: int) -> list[dict[str, str]]:
    """The rows of metrics.csv up to a step; a row that a killed process began to write is none.

    Raises:
        UserError: the file holds something else, which shall not be lost.
    """
    path = folder / TABLE
    try:
        if not os.path.lexists(path):
            return []
        if not is_own(path):
            raise UserError(f"{path}: this is no file, or a link out of the run's folder; move it away")
        with path.open(encoding="utf-8-sig", newline="") as file:
            # A line without an end would be as long as the file.
            table = csv.DictReader(iter(partial(file.readline, LONGEST_ROW), ""))
            if not {"step"} <= set(table.fieldnames or METRICS) <= set(METRICS):
                raise UserError(f"{path}: these are no metrics of a run; move the file away")
            whole = (row for row in table if None not in row.values() and None not in row)
            return [row for row in whole if row["step"].isdecimal() and int(row["step"]) <= until]
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read ({error}); move it away") from None


@contextmanager
def _undone(path: Path, size: int) -> Iterator[None]:
    """Have a file that cannot be written to the end left at the size that it had."""
    try:
        yield
    except OSError:
        with suppress(OSError):
            os.truncate(path, size)
        raise
