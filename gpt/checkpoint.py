"""A checkpoint: a folder of plain data that is whole or not there.

It is written aside, synced, then renamed. `model.safetensors` holds the weights by parameter name (tied ones once),
`config.json` the run's settings, `state.json` where the training stood, the tokenizer's own files its tokenizer, and
`checksums.json` the SHA-256 of each. Nothing in it is ever executed.
"""

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from gpt.config import UserError, parse
from gpt.data.tokenizer import FILE, Tokenizer
from gpt.files import read_json, sync
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

FORMAT = 1
WAY_OUT = "name the folder of another checkpoint, as in run=…/checkpoints/step_00000100"
WEIGHTS, CONFIG, STATE, CHECKSUMS = "model.safetensors", "config.json", "state.json", "checksums.json"


class Checkpoint(NamedTuple):
    """A whole checkpoint on the disk; its files are not yet verified."""

    folder: Path
    state: Mapping[str, Any]
    """`step`, `tokens`, `elapsed` seconds, `validation_loss` or null."""

    @property
    def step(self) -> int:
        """Updates that made these weights."""
        return int(self.state["step"])

    @property
    def validation_loss(self) -> float | None:
        """Nats per token of these weights, None where they were not evaluated."""
        loss = self.state["validation_loss"]
        return None if loss is None else float(loss)


def write(
    parent: Path, model: GPT, settings: Mapping[str, Any], tokenizer: Tokenizer, state: Mapping[str, Any]
) -> Checkpoint:
    """Write `parent/step_N`, N being `state["step"]`, whole or not at all."""
    folder = parent / f"step_{state['step']:08d}"
    aside = parent / f".{folder.name}.{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed and had the same number
    aside.mkdir(parents=True)
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, aside / WEIGHTS)
    tokenizer.save(aside)
    _write_json(aside / CONFIG, settings)
    _write_json(aside / STATE, {"format": FORMAT, **state})
    _write_json(aside / CHECKSUMS, {path.name: _sha256(path) for path in sorted(aside.iterdir())})
    for path in (*aside.iterdir(), aside):
        sync(path)
    aside.rename(folder)
    sync(parent)
    return Checkpoint(folder, state)


def find(parent: Path) -> list[Checkpoint]:
    """The checkpoints in `parent`, oldest first; what has another kind of name is none.

    Raises:
        UserError: one whose state cannot be read or is of a newer format.
    """
    folders = [path for path in parent.glob("step_*") if re.fullmatch(r"step_\d{8,}", path.name)]
    return sorted(map(read, folders), key=lambda checkpoint: checkpoint.step)


def read(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`.

    Raises:
        UserError: its state cannot be read or is of a newer format.
    """
    state = read_json(folder / STATE)
    if state.get("format") != FORMAT:
        raise UserError(
            f"run: {folder} has format {state.get('format')!r:.40}, this version reads {FORMAT}; update gpt"
        )
    if not isinstance(state.get("step"), int) or not isinstance(state.get("validation_loss"), float | None):
        raise UserError(f"run: {folder / STATE} is damaged; {WAY_OUT}")
    return Checkpoint(folder, state)


def best(checkpoints: list[Checkpoint]) -> Checkpoint | None:
    """The one with the lowest validation loss; None where none has one that is finite."""
    losses = [(c.validation_loss, c) for c in checkpoints]
    finite = [(loss, c) for loss, c in losses if loss is not None and math.isfinite(loss)]
    return min(finite, key=lambda pair: pair[0])[1] if finite else None


def prune(checkpoints: list[Checkpoint]) -> list[Checkpoint]:
    """Remove all but the best and the last; those that are left."""
    keep = (best(checkpoints), checkpoints[-1])
    for checkpoint in checkpoints:
        if checkpoint not in keep:
            shutil.rmtree(checkpoint.folder)
    return [checkpoint for checkpoint in checkpoints if checkpoint in keep]


def verify(folder: Path) -> None:
    """Compare all files with their checksums.

    Raises:
        UserError: a file that is missing, was added or was changed.
    """
    sums = read_json(folder / CHECKSUMS)
    there = {path.name for path in folder.iterdir() if path.is_file()} - {CHECKSUMS}
    for name in sorted({WEIGHTS, CONFIG, STATE, FILE} | there | sums.keys()):
        if name not in there or _sha256(folder / name) != sums.get(name):
            raise UserError(f"run: {folder / name} is missing or was changed since it was saved; {WAY_OUT}")


def load_model(folder: Path, device: torch.device) -> tuple[GPT, dict[str, Any]]:
    """The model in evaluation mode, and the settings that it was trained with.

    The module is laid out without memory first and compared with what the file holds, so that a file that does not fit
    its configuration is refused before anything is allocated.

    Raises:
        UserError: configuration or weights that are damaged, or do not fit one another.
    """
    settings = read_json(folder / CONFIG)
    config = _model_config(folder / CONFIG, settings)
    try:
        weights = load_file(folder / WEIGHTS, device=str(device))
    except (SafetensorError, OSError) as error:
        raise UserError(f"run: {folder / WEIGHTS} cannot be read ({error}); {WAY_OUT}") from None
    weights = {_plain_name(name): tensor for name, tensor in weights.items()}
    if config.n_layer > len(weights):
        raise UserError(f"run: {folder / WEIGHTS} does not hold the {config.n_layer} layers of its configuration")
    with torch.device("meta"):
        model = GPT(config)
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if expected != {name: tensor.shape for name, tensor in weights.items()}:
        raise UserError(f"run: the weights in {folder / WEIGHTS} do not have the names and shapes of its configuration")
    if not all(tensor.is_floating_point() and tensor.isfinite().all() for tensor in weights.values()):
        raise UserError(f"run: the weights in {folder / WEIGHTS} are not all finite numbers; {WAY_OUT}")
    model.load_state_dict(weights, assign=True)
    return model.eval(), settings


def _model_config(path: Path, settings: Mapping[str, Any]) -> GPTConfig:
    model = settings.get("model")
    if not isinstance(model, dict) or model.get("vocab_size") is None:
        raise UserError(f"run: {path} describes no model; {WAY_OUT}")
    try:
        return parse(GPTConfig, model, "model")
    except UserError as error:
        raise UserError(f"run: {path}: {error}") from None


def _plain_name(name: str) -> str:
    """A parameter's name without the prefixes that torch.compile and DistributedDataParallel add."""
    return name.removeprefix("module.").removeprefix("_orig_mod.").removeprefix("module.")


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
