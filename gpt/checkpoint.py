"""A checkpoint: a folder of plain data that is whole or not there.

It is written aside, synced, then renamed. `model.safetensors` holds the weights by parameter name (tied ones once),
`config.json` the run's settings, `state.json` where the training stood, the tokenizer's own files its tokenizer, and
`checksums.json` the SHA-256 of each. Nothing in it is ever executed.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import NonNegativeFloat, NonNegativeInt
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from gpt.config import Config, UserError, parse
from gpt.data.tokenizer import FILE, Tokenizer
from gpt.files import read_json, sync
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

FORMAT: Literal[1] = 1
WAY_OUT = "name the folder of another checkpoint, as in run=…/checkpoints/step_00000100"
WEIGHTS, CONFIG, STATE, CHECKSUMS = "model.safetensors", "config.json", "state.json", "checksums.json"


class State(Config):
    """Where a training stood when it wrote a checkpoint."""

    format: Literal[1] = FORMAT
    """Of the folder; raised when a reader of this version could not read it."""
    step: NonNegativeInt
    """Updates that made these weights."""
    tokens: NonNegativeInt
    """Tokens that they were trained on."""
    elapsed: NonNegativeFloat
    """Seconds of training."""
    validation_loss: float | None
    """Nats per token of these weights; null where they were not evaluated, or the loss is no finite number."""


class Checkpoint(NamedTuple):
    """A whole checkpoint on the disk; its files are not yet verified."""

    folder: Path
    state: State


def write(parent: Path, model: GPT, settings: Mapping[str, Any], tokenizer: Tokenizer, state: State) -> Checkpoint:
    """Write `parent/step_N`, N being the state's step, whole or not at all."""
    folder = parent / f"step_{state.step:08d}"
    aside = parent / f".{folder.name}.{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed and had the same number
    aside.mkdir(parents=True)
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, aside / WEIGHTS)
    tokenizer.save(aside)
    _write_json(aside / CONFIG, settings)
    _write_json(aside / STATE, state.model_dump())
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
    return sorted(map(read, folders), key=lambda checkpoint: checkpoint.state.step)


def read(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`.

    Raises:
        UserError: its state cannot be read or is of a newer format.
    """
    state = read_json(folder / STATE)
    if state.get("format") != FORMAT:
        found = f"{state.get('format')!r:.40}"
        raise UserError(f"run: {folder} has format {found}, this version reads {FORMAT}; update gpt")
    try:
        return Checkpoint(folder, parse(State, state))
    except UserError as error:
        raise UserError(f"run: {folder / STATE}: {error}") from None


def best(checkpoints: list[Checkpoint]) -> Checkpoint | None:
    """The one with the lowest validation loss; None where none was evaluated."""
    evaluated = [(c.state.validation_loss, c) for c in checkpoints if c.state.validation_loss is not None]
    return min(evaluated, key=lambda pair: pair[0])[1] if evaluated else None


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
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            shapes = {_plain_name(name): tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"run: {folder / WEIGHTS} cannot be read ({error}); {WAY_OUT}") from None
    if config.n_layer > len(shapes):
        raise UserError(f"run: {folder / WEIGHTS} does not hold the {config.n_layer} layers of its configuration")
    with torch.device("meta"):
        model = GPT(config)
    if shapes != {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}:
        raise UserError(f"run: the weights in {folder / WEIGHTS} do not have the names and shapes of its configuration")
    weights = {_plain_name(name): t for name, t in load_file(folder / WEIGHTS, device=str(device)).items()}
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
