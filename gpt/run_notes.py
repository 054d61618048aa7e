"""What a run's folder keeps for whoever reads of the run later, and no training or sampling needs.

samples.jsonl   what the model wrote as it learned: {"step": 250, "text": "…"} a line
summary.json    what the run was told to do, on what, and where, in words: {"model": "1,968,320 parameters: …"}
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gpt.config import UserError
from gpt.files import LARGEST_SETTINGS, is_own, read_json, write_whole

SAMPLES, SUMMARY = "samples.jsonl", "summary.json"
LARGEST_SAMPLES = 1 << 28
"""Bytes of all samples of a run; one has about 2^10."""


class Sample(NamedTuple):
    """A text that a model wrote on its way."""

    step: int
    """Updates that it had done."""
    text: str


def append_sample(folder: Path, sample: Sample) -> None:
    """Add a line.

    Raises:
        OSError: it cannot be written.
    """
    with (folder / SAMPLES).open("a", encoding="utf-8", newline="") as file:
        file.write(_line(sample))


def read_samples(folder: Path, until: int) -> list[Sample]:
    """Those up to a step; a line that a killed process began to write is none.

    Raises:
        UserError: what is there is no file of the folder, or too large, or cannot be read.
    """
    path = folder / SAMPLES
    try:
        if not os.path.lexists(path):
            return []
        if not is_own(path) or path.stat().st_size > LARGEST_SAMPLES:
            raise UserError(f"{path}: this is no file of samples, or a link out of the run's folder; move it away")
        return [sample for sample in _parsed(path) if sample.step <= until]
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); move it away") from None


def cut_samples(folder: Path, until: int) -> None:
    """Forget those after a step, which a run that goes on from there writes anew.

    Raises:
        UserError: as of `read_samples`.
        OSError: it cannot be written.
    """
    samples = read_samples(folder, until)
    if (folder / SAMPLES).exists():
        write_whole(folder / SAMPLES, "".join(map(_line, samples)))


def write_summary(folder: Path, summary: Mapping[str, str]) -> None:
    """Put it in the place of what there is.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(folder / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def read_summary(folder: Path) -> dict[str, str]:
    """As label and text; nothing where an earlier version left none.

    Raises:
        UserError: it is damaged.
    """
    if not os.path.lexists(folder / SUMMARY):
        return {}
    return {label: str(text) for label, text in read_json(folder / SUMMARY, LARGEST_SETTINGS).items()}


def _line(sample: Sample) -> str:
    return json.dumps(sample._asdict(), ensure_ascii=False) + "\n"


def _parsed(path: Path) -> Iterator[Sample]:
    """Each line that is a sample."""
    for line in path.read_bytes().split(b"\n"):
        with suppress(ValueError, RecursionError):
            content: Any = json.loads(line)
            if isinstance(content, dict) and type(content.get("step")) is int and isinstance(content.get("text"), str):
                yield Sample(content["step"], content["text"])
