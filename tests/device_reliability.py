"""What one device does under stress: `python tests/device_reliability.py device=cuda`; CI runs it on the CPU.

A run that is stopped and resumed in bf16 has the losses of one that is not, within the noise of sums in any order (on a
CPU bit for bit). Where memory is short, an update that does not fit is refused in one line with a number that does, and
`accumulate=auto` finds that number and trains the same batches by it.
"""

import csv
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch

from gpt.cli.composition import compose
from gpt.config import ROOT, RunError
from gpt.device import choose_device, prepare_device
from gpt.training.settings import TrainSettings
from gpt.training.update import MicroBatch, Update

TOLERANCE = {"cpu": 0.0, "cuda": 0.02}
"""Of a loss after resuming, relatively."""

ROOM = 1 << 30
"""Bytes of a GPU that a training may take, beside what the process has already."""

ROWS_ON_HOST = 16
"""Sequences at once that a CPU, whose memory has no such limit, plays to have room for."""

MODEL = [
    "tokenizer=byte",
    "dataset.years=[1790,1800]",
    "model.n_layer=4",
    "model.n_head=4",
    "model.d_model=256",
    "model.context=256",
]
COMMON = [*MODEL, "logger=[]", "eval_tokens=2000", "compile=off", "precision=bf16"]
ROWS = {"cpu": 64, "cuda": 512}
"""Sequences of an update that is too large."""


def main() -> None:
    """Both, on the device that is named."""
    name = dict(argument.split("=") for argument in sys.argv[1:]).get("device", "auto")
    device = choose_device(name)
    prepare_device(device)
    with TemporaryDirectory() as folder:
        print(resume(Path(folder), device), flush=True)
        print(short_of_memory(Path(folder), device), flush=True)


def train(folder: Path, *arguments: str) -> list[dict[str, str]]:
    """The rows of a training's metrics."""
    spec = importlib.util.spec_from_file_location("train_script", ROOT / "train.py")
    assert spec
    assert spec.loader
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.train(*compose("train", arguments, TrainSettings))
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def resume(place: Path, device: torch.device) -> str:
    """Compare a run that was left at its half with one that was not."""
    whole, left = place / "whole", place / "left"
    fixed = [*COMMON, f"device={device}", "batch_size=8", "model.dropout=0.1", "eval_every=10", "save_every=10"]
    one = train(whole, *fixed, "steps=20", f"hydra.run.dir={whole}")
    train(left, *fixed, "steps=20", "keep=9", f"hydra.run.dir={left}")
    last = left / "checkpoints" / "step_00000020"
    last.rename(place / "step_00000020")
    other = train(left, f"resume={left}")
    losses = [[float(row["loss"]) for row in rows if row["loss"]] for rows in (one, other)]
    difference = max(abs(a - b) / a for a, b in zip(*losses, strict=True))
    assert difference <= TOLERANCE[device.type], f"after resuming a loss differs by {difference:.2%}"
    return f"{device} resumed in bf16: losses within {difference:.1e} of those of a run that was never left"


def short_of_memory(place: Path, device: torch.device) -> str:
    """Refuse what does not fit, then find what does."""
    rows, run = ROWS[device.type], place / "small"
    fixed = [*COMMON, f"device={device}", f"batch_size={rows}", "steps=3", "eval_every=3", "save_every=3"]
    with limited(device):
        try:
            train(run, *fixed, f"hydra.run.dir={run}")
        except RunError as error:
            told = str(error)
        else:
            raise AssertionError("an update that is too large was not refused")
        assert not run.exists()
        fits = re.search(r"accumulate=(\d+) fits", told)
        assert fits, told
        found = train(run, *fixed, "accumulate=auto", f"hydra.run.dir={run}")
    assert int(found[-1]["tokens"]) == 3 * rows * 256, "the batch is what it was"
    state = next((run / "checkpoints").glob("step_*/state.json")).read_text()
    assert f'"accumulate": {fits[1]}' in state, state
    return f"{device}, short of memory: {told}; accumulate=auto took {fits[1]} for the same batch"


@contextmanager
def limited(device: torch.device) -> Iterator[None]:
    """Within, the device has little room."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved(device) + ROOM) / total, device)
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0, device)
        return
    try_memory = Update.try_memory

    def full(update: Update, micro_batch: MicroBatch) -> None:
        if len(micro_batch[0]) > ROWS_ON_HOST:
            raise torch.OutOfMemoryError
        try_memory(update, micro_batch)

    with patch.object(Update, "try_memory", full):
        yield


if __name__ == "__main__":
    main()
