"""Documents -> token files: made once, memory-mapped, found again by text and tokenizer settings.

Prepared tokens are one folder: `train.bin` and `validation.bin` (the documents' ids one after the other, each
document followed by end-of-text where the tokenizer has one; little-endian uint16, or uint32 for a vocabulary
above 65,536), the tokenizer's `vocabulary.json`, and `prepared.json`, which says how much of everything there
must be. The folder is written aside, synced and renamed: it is whole, or it is not there.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import numpy as np
from pydantic import NonNegativeInt

from gpt.config import Config, UserError, parse
from gpt.data.dataset import Dataset
from gpt.data.pieces import pieces
from gpt.data.progress import watched
from gpt.data.tokenizer import Tokenizer, TokenizerConfig, load
from gpt.files import read_json, sync

SIDECAR = "prepared.json"

VERSION = 1
"""Of all that is prepared: raised with any change of its files or of how tokenizers learn or split."""


class Counts(Config):
    """How much there is of a split."""

    tokens: NonNegativeInt
    """Ids in the file, end-of-text included."""
    documents: NonNegativeInt
    """Documents."""
    text_bytes: NonNegativeInt
    """UTF-8 bytes of text, to which end-of-text adds none."""


class Sidecar(Config):
    """The content of `prepared.json`."""

    train: Counts
    validation: Counts


@dataclass(frozen=True)
class TokenFile:
    """A split's tokens on disk."""

    path: Path
    counts: Counts
    vocab_size: int
    """Ids are below it."""

    def __len__(self) -> int:
        return self.counts.tokens

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.counts.documents

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of text that the tokens stand for."""
        return self.counts.text_bytes

    @cached_property
    def tokens(self) -> np.ndarray:
        """The ids, shape (tokens,), uint16 or uint32: mapped into memory, read-only, opened at first use."""
        if not self.counts.tokens:  # an empty file cannot be mapped
            return np.empty(0, id_type(self.vocab_size))
        return np.memmap(self.path, id_type(self.vocab_size), mode="r", shape=(self.counts.tokens,))

    def check_size(self) -> None:
        """Refuse a file that was cut or grew.

        Raises:
            UserError: the file is not there, or its size is not that of its tokens.
        """
        expected = self.counts.tokens * id_type(self.vocab_size).itemsize
        size = self.path.stat().st_size if self.path.exists() else None
        if size != expected:
            found = "is missing" if size is None else f"has {size:,} bytes instead of {expected:,}"
            raise UserError(f"{self.path} {found}; delete {self.path.parent} and its tokens are prepared anew")


@dataclass(frozen=True)
class Prepared:
    """A dataset's tokens, and the tokenizer that made them."""

    description: str
    """What the text is, for people."""
    tokenizer: Tokenizer
    train: TokenFile
    validation: TokenFile | None
    """None where the dataset holds nothing out."""


def id_type(vocab_size: int) -> np.dtype:
    """The numbers that ids are stored as."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


def prepare(dataset: Dataset, tokenizer: TokenizerConfig, folder: Path) -> Prepared:
    """The dataset's tokens, from an earlier preparation of the same text and settings or made now.

    Several processes may do so at once: the first that is done is taken by all. An interruption, of whatever
    kind, leaves nothing that a later call takes for prepared. Memory does not grow with the dataset.

    Args:
        dataset: the text.
        tokenizer: what to build from its training documents.
        folder: where prepared tokens live; made where it is not there.

    Raises:
        UserError: the folder cannot be made or written, or what was prepared earlier is damaged.
    """
    whole = folder / f"{dataset.name}-{tokenizer.name}-{fingerprint(dataset, tokenizer)[:16]}"
    if whole.exists():
        return open_prepared(whole, dataset.describe())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        workshop = TemporaryDirectory(prefix=".preparing-", dir=folder)
    except OSError as error:
        raise UserError(f"{folder}: prepared tokens cannot be kept there: {error.strerror}") from None
    with workshop as temporary:
        aside = Path(temporary) / whole.name
        aside.mkdir()
        write(dataset, tokenizer, aside)
        publish(aside, whole)
    return open_prepared(whole, dataset.describe())


def fingerprint(dataset: Dataset, tokenizer: TokenizerConfig) -> str:
    """What prepared tokens are found by: all that they depend on."""
    depends = [VERSION, dataset.fingerprint(), tokenizer.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def write(dataset: Dataset, config: TokenizerConfig, folder: Path) -> None:
    """Fill the folder, each file synced; `prepared.json` comes last."""
    tokenizer = config.build(lambda: watched(dataset.documents("train"), f"{config.name} tokenizer"))
    tokenizer.save(folder)
    train, validation = (
        write_split(watched(dataset.documents(split), f"{split} tokens"), tokenizer, folder / f"{split}.bin")
        for split in ("train", "validation")
    )
    sidecar = Sidecar(train=train, validation=validation)
    (folder / SIDECAR).write_text(sidecar.model_dump_json(indent=2) + "\n", encoding="utf-8")


def write_split(documents: Iterable[str], tokenizer: Tokenizer, path: Path) -> Counts:
    """Write the documents' ids to the file, piece by piece, and count them."""
    tokens = count = text_bytes = 0
    end = [] if tokenizer.end_of_text is None else [tokenizer.end_of_text]
    with path.open("wb") as file:
        for document in documents:
            for piece in pieces(document):
                tokens += append(file, tokenizer.encode(piece), tokenizer.vocab_size)
                text_bytes += len(piece.encode())
            tokens += append(file, end, tokenizer.vocab_size)
            count += 1
    return Counts(tokens=tokens, documents=count, text_bytes=text_bytes)


def append(file: BinaryIO, ids: list[int], vocab_size: int) -> int:
    """Write ids; how many they were."""
    file.write(np.array(ids, id_type(vocab_size)).tobytes())
    return len(ids)


def publish(aside: Path, whole: Path) -> None:
    """Give a finished folder its name, unless another process has given it to its own, which is the same."""
    for path in [*aside.iterdir(), aside]:
        sync(path)
    try:
        aside.rename(whole)
    except OSError:
        if not whole.exists():
            raise
    else:
        sync(whole.parent)


def open_prepared(folder: Path, description: str) -> Prepared:
    """Tokens that were prepared earlier, their tokenizer and sizes checked.

    Raises:
        UserError: a file is missing, damaged or of another size.
    """
    sidecar = parse(Sidecar, read_json(folder / SIDECAR), str(folder / SIDECAR))
    tokenizer = load(folder)
    train, validation = (
        TokenFile(folder / f"{split}.bin", counts, tokenizer.vocab_size)
        for split, counts in (("train", sidecar.train), ("validation", sidecar.validation))
    )
    train.check_size()
    validation.check_size()
    return Prepared(description, tokenizer, train, validation if validation.documents else None)
