"""A model in the files of another program: the contract of what `run=` and `init=` open by a prefix."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.config import UserError, parse
from gpt.data.tokenizer import Tokenizer
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.weights import check_rows

Shape = tuple[int, ...]


class Foreign:
    """A model of others, read so far that its weights are known to fit its configuration.

    Args:
        name: by which it is opened again from any folder.
        folder: where its files are.
        config: what it is in our terms.
    """

    def __init__(self, name: str, folder: Path, config: GPTConfig) -> None:
        self.name = name
        self.folder = folder
        self.config = config

    def tokenizer(self) -> Tokenizer:
        """The one that it was trained with.

        Raises:
            UserError: it cannot be read or had.
        """
        raise NotImplementedError

    def weights(self) -> dict[str, Tensor]:
        """All weights by our names, fp32, on the CPU.

        Raises:
            UserError: they cannot be read, or are not finite.
        """
        raise NotImplementedError

    def load(self, device: torch.device) -> tuple[GPT, Tokenizer]:
        """The model in evaluation mode, and its tokenizer.

        Raises:
            UserError: as of `weights` and `tokenizer`; the table has fewer rows than there are tokens.
        """
        tokenizer = self.tokenizer()
        check_rows(self.folder, tokenizer, self.config.vocab_size or 0)
        model = empty(self.config)
        model.load_state_dict(self.weights(), assign=True)
        return model.to(device).eval(), tokenizer


def empty(config: GPTConfig) -> GPT:
    """A model without memory for its weights."""
    with torch.device("meta"):
        return GPT(config)


def checked(settings: Mapping[str, Any]) -> GPTConfig:
    """The configuration that settings of ours describe.

    Raises:
        UserError: they describe none.
    """
    config = parse(GPTConfig, settings, "model")
    if config.vocab_size is None:
        raise UserError("model.vocab_size: a number of tokens is needed, got null")
    return config


@contextmanager
def told_of(path: Path) -> Iterator[None]:
    """Have what is wrong in a file told with its path, once."""
    try:
        yield
    except UserError as error:
        told = str(error).removeprefix("run: ")
        raise UserError(f"run: {told}" if str(path) in told else f"run: {path}: {told}") from None


def refuse_misfit(path: Path, found: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> None:
    """Compare the names and shapes of tensors that there are with those that a configuration wants.

    Raises:
        UserError: they differ.
    """
    if wrong := sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)):
        name = wrong[0]
        raise UserError(
            f"run: {path}: the tensor {name} is {found.get(name, 'not there')}, by the configuration "
            f"{wanted.get(name, 'not there')}{f', and {len(wrong) - 1:,} more differ' if wrong[1:] else ''}; "
            "get the files again, or another model"
        )
