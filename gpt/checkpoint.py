"""A checkpoint: a folder of plain data that is whole or not there.

It is written aside, synced, then renamed. `model.safetensors` holds the weights by parameter name (tied ones once),
`config.json` the run's settings, `state.json` where the training stood, the tokenizer's own files its tokenizer, and
`checksums.json` the SHA-256 of each. Nothing in it is ever executed.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from gpt.config import UserError, parse
from gpt.data.tokenizer import Tokenizer
from gpt.data.tokens import sync
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

FORMAT = 1
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
    """The checkpoints in `parent`, oldest first.

    Raises:
        UserError: one whose state cannot be read or is of a newer format.
    """
    folders = sorted(parent.glob("step_*")) if parent.is_dir() else []
    return [Checkpoint(folder, _read_state(folder)) for folder in folders]


def best(checkpoints: list[Checkpoint]) -> Checkpoint | None:
    """The one with the lowest validation loss; None where none has one that is finite."""
    losses = [(c.validation_loss, c) for c in checkpoints]
    finite = [(loss, c) for loss, c in losses if loss is not None and math.isfinite(loss)]
    return min(finite, key=lambda pair: pair[0])[1] if finite else None


def prune(checkpoints: list[Checkpoint]) -> None:
    """Remove all but the best and the last."""
    keep = [checkpoints[-1], best(checkpoints)]
    for checkpoint in checkpoints:
        if checkpoint not in keep:
            shutil.rmtree(checkpoint.folder)


def verify(folder: Path) -> None:
    """Compare all files with their checksums.

    Raises:
        UserError: a file that is missing or was changed.
    """
    sums = read_json(folder / CHECKSUMS)
    for name in (WEIGHTS, CONFIG, STATE, *sums):
        path = folder / Path(name).name
        if name not in sums or not path.is_file() or _sha256(path) != sums[name]:
            raise UserError(f"run: {path} is missing or was changed since it was saved; take another checkpoint")


def load_model(folder: Path, device: torch.device) -> tuple[GPT, dict[str, Any]]:
    """The model in evaluation mode, and the settings that it was trained with.

    The module is laid out without memory first and compared with what the file holds, so that a file that does not fit
    its configuration is refused before anything is allocated.

    Raises:
        UserError: configuration or weights that are damaged, or do not fit one another.
    """
    settings = read_json(folder / CONFIG)
    if not isinstance(settings.get("model"), dict) or settings["model"].get("vocab_size") is None:
        raise UserError(f"run: {folder / CONFIG} describes no model; the checkpoint is damaged")
    config = parse(GPTConfig, settings["model"], "model")
    try:
        weights = load_file(folder / WEIGHTS, device=str(device))
    except (SafetensorError, OSError) as error:
        raise UserError(f"run: {folder / WEIGHTS} cannot be read ({error}); the checkpoint is damaged") from None
    weights = {_plain_name(name): tensor for name, tensor in weights.items()}
    if config.n_layer > len(weights):
        raise UserError(f"run: {folder / WEIGHTS} does not hold the {config.n_layer} layers of its configuration")
    with torch.device("meta"):
        model = GPT(config)
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if expected != {name: tensor.shape for name, tensor in weights.items()}:
        raise UserError(f"run: the weights in {folder / WEIGHTS} do not have the names and shapes of its configuration")
    model.load_state_dict(weights, assign=True)
    return model.eval(), settings


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        UserError: not there, or no JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"run: {path} cannot be read ({type(error).__name__}); the checkpoint is not whole") from None
    if not isinstance(data, dict):
        raise UserError(f"run: {path} holds no JSON object; the checkpoint is not whole")
    return data


def _read_state(folder: Path) -> dict[str, Any]:
    state = read_json(folder / STATE)
    if state.get("format") != FORMAT:
        raise UserError(f"run: {folder} has format {state.get('format')!r}, this version reads {FORMAT}; update gpt")
    if not isinstance(state.get("step"), int) or not isinstance(state.get("validation_loss"), float | None):
        raise UserError(f"run: {folder / STATE} is damaged; take another checkpoint")
    return state


def _plain_name(name: str) -> str:
    """A parameter's name without the prefixes that torch.compile and DistributedDataParallel add."""
    return name.removeprefix("module.").removeprefix("_orig_mod.").removeprefix("module.")


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
