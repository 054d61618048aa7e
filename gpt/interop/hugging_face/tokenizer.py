"""A tokenizer beside a model."""

from pathlib import Path

from gpt.data import tokenizer as tokenizers
from gpt.data.tokenizer import Tokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> list[str]:
    """Write it; remarks for the model card."""
    del context
    tokenizer.save(folder)
    return []


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in a folder."""
    return tokenizers.load(folder)
