"""A run's folder: configuration, metrics, checkpoints. Opens a model from the folder alone.

    config.yaml   metrics.csv   checkpoints/step_00000200/...

The folder may be moved or sent; nothing in it names a path outside of it, and nothing in it is executed.
"""

import csv
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, overload

import torch
import yaml

from gpt import checkpoint
from gpt.checkpoint import Checkpoint, State
from gpt.config import ROOT, UserError, parse
from gpt.data import tokenizer as tokenizers
from gpt.data.tokenizer import Tokenizer
from gpt.device import DTYPES, PrecisionName, choose_device, choose_precision
from gpt.files import nearby
from gpt.generation.settings import GenerationSettings
from gpt.generation.text import TextGeneration
from gpt.model.gpt import GPT

RUNS = ROOT / "runs"
CONFIG = "config.yaml"
NAME_BYTES = 200
"""Of a run's name that its folder bears; file systems allow 255 in all."""
METRICS = (
    "step", "tokens", "elapsed", "lr", "loss", "grad_norm", "tokens_per_second", "skipped",
    "validation_loss", "validation_bits_per_byte",
)  # fmt: skip
"""The columns of metrics.csv; times in seconds, losses in nats per token."""


class RunFolder:
    """The folder of a run that is being trained."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], tokenizer: Tokenizer) -> None:
        self.folder = folder
        self.settings = settings
        self.tokenizer = tokenizer
        self._checkpoints: list[Checkpoint] = []
        try:
            with (folder / CONFIG).open("x", encoding="utf-8") as file:
                yaml.safe_dump(dict(settings), file, sort_keys=False, allow_unicode=True)
        except FileExistsError:
            raise UserError(f"hydra.run.dir: {folder} was taken by another run just now; name a new folder") from None
        with self._metrics() as file:
            csv.writer(file, lineterminator="\n").writerow(METRICS)

    def log(self, metrics: Mapping[str, float]) -> None:
        """Append a row to metrics.csv; metrics that are not there stay empty."""
        with self._metrics() as file:
            csv.DictWriter(file, METRICS, lineterminator="\n").writerow(metrics)

    def save(self, model: GPT, state: State) -> Checkpoint:
        """Write a checkpoint; of all there are, keep the best and the last."""
        parent = self.folder / "checkpoints"
        self._checkpoints.append(checkpoint.write(parent, model, self.settings, self.tokenizer, state))
        self._checkpoints = checkpoint.prune(self._checkpoints)
        return self._checkpoints[-1]

    @property
    def best(self) -> Checkpoint | None:
        """The checkpoint of the lowest validation loss; None where none was evaluated."""
        return checkpoint.best(self._checkpoints)

    def _metrics(self) -> Any:
        return (self.folder / "metrics.csv").open("a", encoding="utf-8", newline="")


def refuse_taken(folder: Path) -> None:
    """A run never overwrites another.

    Raises:
        UserError: `folder` is there and holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"hydra.run.dir: {folder} is there already; a run never overwrites another: name a new folder")


def claim_folder(wanted: Path | None, name: str) -> Path:
    """Make the folder of a new run: `wanted`, or `runs/DATE_TIME_NAME` in the checkout.

    Of two runs that begin in the same second, the second one gets `-2`.

    Raises:
        UserError: `wanted` holds something, or a folder cannot be made.
    """
    if wanted is not None:
        _make_parents(wanted)
        with suppress(FileExistsError):
            wanted.mkdir()
        refuse_taken(wanted)
        return wanted
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).encode()[:NAME_BYTES].decode(errors="ignore")
    first = RUNS / f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{plain}"
    _make_parents(first)
    folder, numbers = first, count(2)
    while True:
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
        folder = first.with_name(f"{first.name}-{next(numbers)}")


def _make_parents(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"hydra.run.dir: {folder.parent} cannot be made: {error.strerror}") from None


@dataclass
class Run:
    """A trained run, opened to be used."""

    folder: Path
    checkpoint: Checkpoint
    """Where the weights are from."""
    which: str
    """Why this checkpoint, in words."""
    model: GPT
    """In evaluation mode, on its device."""
    tokenizer: Tokenizer
    """The one that it was trained with."""
    config: dict[str, Any]
    """The run's whole configuration, as plain data."""

    def describe(self) -> str:
        """Which weights these are, and where they compute, in a line."""
        state = self.checkpoint.state
        loss = "not evaluated" if state.validation_loss is None else f"validation loss {state.validation_loss:.4f}"
        weight = self.model.embedding.weight
        return (
            f"{nearby(self.folder)}: step {state.step:,} ({self.which}, {loss}), "
            f"{self.model.count_parameters():,} parameters, {weight.device}, {str(weight.dtype).removeprefix('torch.')}"
        )

    def texts(self, prompts: Sequence[str], settings: GenerationSettings) -> TextGeneration:
        """Texts being written, to be iterated over; `generate` is the simple way."""
        return TextGeneration(self.model, self.tokenizer, prompts, settings)

    @overload
    def generate(self, prompt: str, **settings: Any) -> str: ...
    @overload
    def generate(self, prompt: list[str], **settings: Any) -> list[str]: ...
    def generate(self, prompt: str | list[str], **settings: Any) -> str | list[str]:
        """What the model writes after a prompt, or after each of several side by side.

        Args:
            prompt: one or more texts; an empty one starts a new document.
            settings: those of `GenerationSettings`, as max_new_tokens=100, temperature=0.8.

        Returns:
            The new text without the prompt; for a list of prompts, or with num_samples above 1, a list of texts, the
            samples of one prompt side by side.

        Raises:
            UserError: a setting that there is not, or out of its range.
        """
        chosen = parse(GenerationSettings, settings)
        prompts = [prompt] if isinstance(prompt, str) else prompt
        generation = self.texts(prompts, chosen)
        for notice in generation.notices:
            warnings.warn(notice, stacklevel=2)
        texts = [sample.text for sample in generation.run()]
        return texts[0] if isinstance(prompt, str) and chosen.num_samples == 1 else texts


def load(run: str | Path = "latest", device: str | torch.device = "auto", precision: PrecisionName = "auto") -> Run:
    """Open a run's folder: its best checkpoint, or its last where none was evaluated.

    Args:
        run: the folder, wherever it is now, or one of the checkpoints in it; `latest` is the newest one in `runs/`
            that holds a checkpoint.
        device: auto, cuda, cuda:1, mps or cpu.
        precision: auto (fp32 on the CPU), fp32, bf16 or fp16, of weights and all that is computed with them.

    Raises:
        UserError: no such run, no checkpoint in it, or a checkpoint that is damaged.
    """
    where = choose_device(str(device))
    if precision == "auto" and where.type == "cpu":
        precision = "fp32"  # one token at a time, converting between types costs more than bf16 products save
    computes = choose_precision(precision, where)
    folder = latest() if str(run) == "latest" else Path(run)
    point, which = choose_checkpoint(folder)
    checkpoint.verify(point.folder)
    model, config = checkpoint.load_model(point.folder, where)
    tokenizer = tokenizers.load(point.folder)
    if tokenizer.vocab_size > model.embedding.num_embeddings:
        raise UserError(
            f"run: the tokenizer in {point.folder} has {tokenizer.vocab_size} tokens, the weights have "
            f"{model.embedding.num_embeddings}; they do not belong together"
        )
    return Run(folder, point, which, model.to(DTYPES[computes.name]), tokenizer, config)


def choose_checkpoint(folder: Path) -> tuple[Checkpoint, str]:
    """The best of a run's checkpoints, else its last, or `folder` itself where it is a checkpoint; and which it is.

    Raises:
        UserError: there is none.
    """
    if (folder / checkpoint.STATE).is_file():
        return checkpoint.read(folder), "the checkpoint named"
    checkpoints = checkpoint.find(folder / "checkpoints")
    if not checkpoints:
        what = "holds no checkpoint" if folder.is_dir() else "is no folder" if folder.exists() else "is not there"
        raise UserError(f"run: {folder} {what}; name the folder of a run, or run=latest")
    best = checkpoint.best(checkpoints)
    return (best, "the best checkpoint") if best else (checkpoints[-1], "the last checkpoint")


def latest() -> Path:
    """The newest folder in `runs/` that holds a checkpoint.

    Raises:
        UserError: there is none.
    """
    holding = [path.parents[1] for path in RUNS.glob("*/checkpoints/step_*") if (path.parents[1] / CONFIG).is_file()]
    if not holding:
        raise UserError(f"run: no run in {RUNS} holds a checkpoint yet; train one first: python train.py")
    return max(holding, key=lambda folder: (folder / CONFIG).stat().st_mtime_ns)
