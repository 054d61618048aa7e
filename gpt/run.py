"""A trained run, opened from its folder alone: model, tokenizer, configuration."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import torch

from gpt import checkpoint
from gpt.checkpoint import OPTIMIZER, Checkpoint
from gpt.config import UserError, parse
from gpt.data.tokenizer import Tokenizer
from gpt.device import DTYPES, CompileMode, PrecisionName, choose_device, choose_precision
from gpt.files import nearby
from gpt.generation.decoder.choice import Decoding
from gpt.generation.decoder.prepared import Quantize, check_quantize
from gpt.generation.settings import GenerationSettings
from gpt.generation.text import TextGeneration
from gpt.interop.foreign import Foreign
from gpt.interop.opening import opened
from gpt.model.gpt import GPT
from gpt.runs import RUNS, run_folders
from gpt.weights import check_tokenizer, load_model

LARGE = 5_000_000
"""Parameters. Below, a CPU writes faster in fp32: converting between types costs more than bf16 products save; above,
reading the weights takes the time, and bf16 has half of it to read."""


@dataclass
class Run:
    """A trained run, opened to be used."""

    folder: Path
    checkpoint: Checkpoint | None
    """Where the weights are from; None where another program wrote them."""
    which: str
    """Why this checkpoint, or which program, in words."""
    model: GPT
    """In evaluation mode, on its device."""
    tokenizer: Tokenizer
    """The one that it was trained with."""
    config: dict[str, Any]
    """The run's whole configuration, as plain data."""
    decoding: Decoding
    """How the model sees the tokens that it writes."""

    def describe(self) -> str:
        """Which weights these are, and where they compute, in a line."""
        weight = self.model.embedding.weight
        return (
            f"{self._stood()}, "
            f"{self.model.count_parameters():,} parameters, {weight.device}, {str(weight.dtype).removeprefix('torch.')}"
        )

    def _stood(self) -> str:
        """Which weights these are: of a run also where its training stood."""
        if not self.checkpoint:
            return self.which
        state = self.checkpoint.state
        loss = "not evaluated" if state.validation_loss is None else f"validation loss {state.validation_loss:.4f}"
        return f"{nearby(self.folder)}: step {state.step:,} ({self.which}, {loss})"

    def texts(self, prompts: Sequence[str], settings: GenerationSettings) -> TextGeneration:
        """Texts being written, to be iterated over; `generate` is the simple way."""
        return TextGeneration(self.model, self.tokenizer, prompts, settings, self.decoding)

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


def load(
    run: str | Path = "latest",
    device: str | torch.device = "auto",
    precision: PrecisionName = "auto",
    compile: CompileMode = "auto",
    quantize: Quantize | None = None,
) -> Run:
    """Open a run's folder: its best checkpoint, or its last where none was evaluated; or a model of another program.

    Args:
        run: the folder, wherever it is now, or one of the checkpoints in it; `latest` is the newest one in `runs/`
            that holds a checkpoint; hf:FOLDER_OR_NAME is a model of Hugging Face's, nanogpt:FILE one of nanoGPT's.
        device: auto, cuda, cuda:1, mps or cpu.
        precision: auto (what is fastest there for a model of this size), fp32, bf16 or fp16, of weights and all that
            is computed with them.
        compile: off; auto compiles the step that writes a token where so many are asked for at once that it repays
            itself; on; strict.
        quantize: int8 rounds the weights to 8 bits for all tokens after the prompt; None: as trained.

    Raises:
        UserError: no such run, no checkpoint in it, or a checkpoint that is damaged.
    """
    where = choose_device(str(device))
    choose_precision(precision, where)  # refuses what the device lacks, before anything is read
    check_quantize(quantize, where)
    foreign = opened(str(run))
    found = _from_others(foreign, where) if foreign else _from_folder(_folder(run), where)
    folder, point, which, model, tokenizer, config = found
    if precision == "auto" and where.type == "cpu" and not quantize and model.count_parameters() < LARGE:
        precision = "fp32"
    computes = choose_precision(precision, where)
    model = model.to(DTYPES[computes.name])
    return Run(folder, point, which, model, tokenizer, config, Decoding(model, compile, quantize))


def _folder(run: str | Path) -> Path:
    return latest() if str(run) == "latest" else Path(run)


_Found = tuple[Path, Checkpoint | None, str, GPT, Tokenizer, dict[str, Any]]
"""The fields of a `Run` but the last, in their order."""


def _from_folder(folder: Path, device: torch.device) -> _Found:
    """What a run's folder holds."""
    point, which = choose_checkpoint(folder)
    checkpoint.verify(point.folder, without=OPTIMIZER)
    model, config = load_model(point.folder, device)
    tokenizer = checkpoint.load_tokenizer(point.folder)
    check_tokenizer(point.folder, tokenizer)
    return folder, point, which, model, tokenizer, config


def _from_others(foreign: Foreign, device: torch.device) -> _Found:
    """What another program's files hold."""
    model, tokenizer = foreign.load(device)
    config = {"model": foreign.config.model_dump(), "tokenizer": {"name": tokenizer.name}}
    return foreign.folder, None, foreign.name, model, tokenizer, config


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
        raise UserError(f"run: {folder} {what}; {meant(folder)}name the folder of a run, or latest")
    best = checkpoint.best(checkpoints)
    return (best, "the best checkpoint") if best else (checkpoints[-1], "the last checkpoint")


def meant(folder: Path) -> str:
    """'did you mean X? ' with the newest run whose folder or name is the last part of a path; '' for none."""
    alike = (run for run in run_folders() if run.name == folder.name or run.name.endswith(f"_{folder.name}"))
    found = next((run for run in alike if folder.name and run.absolute() != folder.absolute()), None)
    return f"did you mean {nearby(found)}? " if found else ""


def latest() -> Path:
    """The newest folder in `runs/` that holds a checkpoint, be it a job of a sweep.

    Raises:
        UserError: there is none.
    """
    for folder in run_folders():
        if any((folder / "checkpoints").glob("step_*")):
            return folder
    raise UserError(f"run: no run in {RUNS} holds a checkpoint yet; train one first: python train.py")
