"""A checkpoint: a folder of plain data that is whole or not there.

It is written aside, synced, then renamed. `model.safetensors` holds the weights by parameter name (tied ones once),
`optimizer.safetensors` the optimizer's state of each, `config.json` the run's settings, `state.json` where the
training stood, the tokenizer's own files its tokenizer, and `checksums.json` the SHA-256 of each. Nothing in it is ever
executed.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, NonNegativeFloat, field_validator
from safetensors.torch import save_file
from torch import Tensor

from gpt.config import Config, UserError, parse
from gpt.data import tokenizer as tokenizers
from gpt.data.tokenizer import FILE, Tokenizer
from gpt.files import LARGEST_SETTINGS, is_own, read_json, sync, workshop

FORMAT: Literal[3] = 3
SCALER = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}
"""What PyTorch's GradScaler gives as its state."""
SAVING, REMOVING = ".saving-", ".removing-"
"""How the names begin of folders in which a checkpoint is made, or goes."""
WAY_OUT = "remove this checkpoint, and the one before it is taken"
WEIGHTS, OPTIMIZER = "model.safetensors", "optimizer.safetensors"
CONFIG, STATE, CHECKSUMS = "config.json", "state.json", "checksums.json"


Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""What a tensor can hold."""


class State(Config):
    """Where a training stood when it wrote a checkpoint."""

    format: Literal[3] = FORMAT
    """Of the folder; raised when a reader of this version could not read it."""
    step: Count
    """Updates that made these weights."""
    tokens: Count
    """Tokens that they were trained on."""
    elapsed: NonNegativeFloat
    """Seconds since the training began."""
    asides: dict[Literal["probing", "compiling", "evaluating"], NonNegativeFloat] = Field(default_factory=dict)
    """Seconds of these that were no training."""
    validation_loss: float | None
    """Nats per token of these weights; null where they were not evaluated, or the loss is no finite number."""
    skipped: Count
    """Updates that were skipped for a loss or gradient that is not finite."""
    skipped_in_a_row: Count
    """The last so many of them."""
    spikes: Count
    """Losses that lay far above those before."""
    losses: list[float]
    """The last ones, which the next ones are compared with."""
    accumulate: Count = Field(gt=0)
    """Micro-steps of an update."""
    scaler: dict[str, int | float]
    """fp16's loss scaler; empty for other precisions."""
    device: Literal["cpu", "cuda", "mps"]
    """The kind of device that the training ran on."""
    precision: Literal["fp32", "bf16", "fp16"]
    """What it computed in."""
    compiled: bool
    """Whether by a compiled forward."""
    data: str
    """A hash of the text, and of how it was tokenized."""

    @property
    def training(self) -> float:
        """Seconds of training alone: updates, and what is written of them."""
        return self.elapsed - sum(self.asides.values())

    @field_validator("scaler")
    @classmethod
    def _is_a_scalers(cls, value: dict[str, int | float]) -> dict[str, int | float]:
        if value and value.keys() != SCALER:
            raise ValueError(f"expected nothing, or {', '.join(sorted(SCALER))}, and no others")
        return value


class Checkpoint(NamedTuple):
    """A whole checkpoint on the disk; its files are not yet verified."""

    folder: Path
    state: State


def write(
    parent: Path,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    tokenizer: Tokenizer,
    state: State,
) -> Checkpoint:
    """Write `parent/step_N`, N being the state's step, whole or not at all."""
    folder = parent / folder_name(state.step)
    if not parent.exists():
        parent.mkdir()
        sync(parent.parent)
    with workshop(parent, SAVING) as place:
        aside = place / folder.name
        aside.mkdir()
        for name, tensors in ((WEIGHTS, weights), (OPTIMIZER, optimizer)):
            write_tensors(aside / name, tensors)
        tokenizer.save(aside)
        _write_json(aside / CONFIG, settings)
        _write_json(aside / STATE, state.model_dump())
        _write_json(aside / CHECKSUMS, {path.name: _sha256(path) for path in sorted(aside.iterdir())})
        for path in (*aside.iterdir(), aside):
            sync(path)
        aside.rename(folder)
    sync(parent)
    return Checkpoint(folder, state)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> None:
    """Write a safetensors file that those may read who may read a new file of this process; alone it is its owner's."""
    path.touch()
    mode = path.stat().st_mode
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, about)
    path.chmod(mode)


def find(parent: Path) -> list[Checkpoint]:
    """The checkpoints in `parent`, oldest first; a link, or what has another kind of name, is none.

    Raises:
        UserError: one whose state cannot be read, is of a newer format or another step; `parent` is no folder, or a
            link to one.
    """
    if parent.is_symlink():
        raise UserError(f"run: {parent}: this is a link out of the run's folder; put what it names here")
    if parent.exists() and not parent.is_dir():
        raise UserError(f"run: {parent} is no folder; name another run")
    folders = [p for p in parent.glob("step_*") if re.fullmatch(r"step_\d{8,}", p.name) and not p.is_symlink()]
    found = sorted(map(read, folders), key=lambda checkpoint: checkpoint.state.step)
    for folder, state in found:
        if folder.name != folder_name(state.step):  # a run that goes on would find the name of another step taken
            raise UserError(f"run: {folder} holds step {state.step}; name it {folder_name(state.step)}, or remove it")
    return found


def folder_name(step: int) -> str:
    """How the folder of a checkpoint is called."""
    return f"step_{step:08d}"


def read(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`.

    Raises:
        UserError: its state cannot be read or is of a newer format.
    """
    state = read_file(folder, STATE)
    if (found := state.get("format")) != FORMAT:
        older = isinstance(found, int) and found < FORMAT
        way_out = "train it anew, or read it with the version that wrote it" if older else "update gpt"
        raise UserError(f"run: {folder} has format {found!r:.40}, this version reads {FORMAT}; {way_out}")
    try:
        return Checkpoint(folder, parse(State, state))
    except UserError as error:
        raise UserError(f"run: {folder / STATE}: {error}; {WAY_OUT}") from None


def best(checkpoints: list[Checkpoint]) -> Checkpoint | None:
    """The one with the lowest validation loss; None where none was evaluated."""
    evaluated = [(c.state.validation_loss, c) for c in checkpoints if c.state.validation_loss is not None]
    return min(evaluated, key=lambda pair: pair[0])[1] if evaluated else None


def prune(checkpoints: list[Checkpoint], keep: int) -> list[Checkpoint]:
    """Remove all but the best and the last `keep`; those that are left."""
    kept = [best(checkpoints), *checkpoints[-keep:]]
    for checkpoint in checkpoints:
        if checkpoint not in kept:
            # It loses its name before its first file: a kill leaves none that is half there.
            with workshop(checkpoint.folder.parent, REMOVING) as place, suppress(FileNotFoundError):  # by hand
                checkpoint.folder.rename(place / checkpoint.folder.name)
    return [checkpoint for checkpoint in checkpoints if checkpoint in kept]


def verify(folder: Path, without: str | None = None) -> None:
    """Compare all files with their checksums; a link that leads out of the folder counts as no file.

    They tell of damage. They keep nobody from harm, who would write right ones: what is verified is still only data.

    Args:
        folder: the checkpoint's.
        without: a file that is not needed, and may be missing.

    Raises:
        UserError: a file that is missing, was added or was changed, or cannot be read.
    """
    sums = read_file(folder, CHECKSUMS)
    try:
        files = {path.name for path in folder.iterdir() if is_own(path)}
        # Hidden ones, such as .DS_Store, come from file managers; nobody here reads them.
        there = {name for name in files if name in sums or not name.startswith(".")} - {CHECKSUMS}
        for name in sorted(({WEIGHTS, OPTIMIZER, CONFIG, STATE, FILE} | there | sums.keys()) - {without}):
            if name not in there or _sha256(folder / name) != sums.get(name):
                raise UserError(f"run: {folder / name} is missing or was changed since it was saved; {WAY_OUT}")
    except OSError as error:
        raise UserError(f"run: {error.filename}: cannot be read: {error.strerror}; {WAY_OUT}") from None


def read_file(folder: Path, name: str) -> dict[str, Any]:
    """The content of a checkpoint's JSON file.

    Raises:
        UserError: it is missing or damaged.
    """
    with _damage_told():
        return read_json(folder / name, LARGEST_SETTINGS)


def load_tokenizer(folder: Path) -> Tokenizer:
    """A checkpoint's tokenizer.

    Raises:
        UserError: it is missing, damaged or of a newer format.
    """
    with _damage_told():
        return tokenizers.load(folder)


@contextmanager
def _damage_told() -> Iterator[None]:
    """What is wrong with a file is told with the setting that it comes from, and the way out."""
    try:
        yield
    except UserError as error:
        raise UserError(f"run: {error}; {WAY_OUT}") from None


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
