"""Text <-> token ids: the contract of a tokenizer variant.

A tokenizer is saved as one plain JSON file beside what was trained with it, and comes back from that file
alone.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from gpt.config import UserError, Variant, variant_class, variant_names
from gpt.data.dataset import Document, Split
from gpt.data.pieces import pieces
from gpt.files import read_json

FILE = "vocabulary.json"
"""The name of a saved tokenizer's file."""

VERSION = 1
"""Of the file's format; a file of another version is refused."""

Documents = Callable[[Split], Iterator[Document]]
"""Starts reading a split's documents from the first; may be called again."""

Unknown = Literal["error", "skip", "replace"]
"""What becomes of a character that a tokenizer does not know: refused, left out, or U+FFFD in its place."""


class TokenizerConfig(Variant):
    """A tokenizer variant's configuration."""

    def build(self, documents: Documents) -> "Tokenizer":
        """The tokenizer, learned from the documents where the variant learns.

        The same configuration and documents give the same tokenizer.

        Args:
            documents: of the text that it is made for.

        Raises:
            UserError: what it needs is not there.
        """
        raise NotImplementedError

    def fingerprint(self) -> dict[str, Any]:
        """What the tokenizer depends on beside the documents, in types that JSON has."""
        return self.model_dump(mode="json")

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "Tokenizer":
        """The tokenizer whose `saved()` this is.

        Raises:
            ValueError: it cannot be one; the message says why.
        """
        raise NotImplementedError


class Tokenizer:
    """Text to ids and back, without loss: `decode(encode(text)) == text`.

    Args:
        tokens: the bytes that each id stands for; none for end-of-text.
        end_of_text: the id that stands after each document, where there is one.
    """

    name: ClassVar[str]
    """The variant's name."""

    pattern: str | None = None
    """The regular expression that splits text into words, which no token crosses; None where text may be cut
    anywhere, and `WHOLE` where it may not be cut at all."""

    def __init__(self, tokens: Sequence[bytes], end_of_text: int | None) -> None:
        self.tokens = tokens
        self.end_of_text = end_of_text

    @property
    def vocab_size(self) -> int:
        """Number of ids, end-of-text included."""
        return len(self.tokens)

    def encode(self, text: str, unknown: Unknown | None = None) -> list[int]:
        """The ids of a text; the text of a special token, such as <|endoftext|>, is text like any other.

        Args:
            text: of any length.
            unknown: what becomes of a character that the tokenizer does not know; None: as it was configured.

        Raises:
            UserError: an unknown character, or half of a surrogate pair, which is no character.
        """
        utf8(text)  # here, so that the place which an error names is one in the whole text
        parts = [text] if self.pattern is None else pieces([text], self.pattern)
        return [i for part in parts for i in self.encode_piece(part, unknown).tolist()]

    def encode_piece(self, text: str, unknown: Unknown | None = None) -> np.ndarray:
        """The ids of a piece of text as `pieces` cuts it, in an array of unsigned integers; else as `encode`.

        Several threads may do so at once.
        """
        raise NotImplementedError

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that the ids stand for; they may begin or end within a character.

        Raises:
            ValueError: an id outside the vocabulary.
        """
        ids = list(ids)
        wrong = [i for i in ids if not 0 <= i < self.vocab_size]
        if wrong:
            raise ValueError(f"token id {wrong[0]} is outside the vocabulary of {self.vocab_size}")
        return b"".join(self.tokens[i] for i in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text that the ids stand for; bytes that form no character become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def byte_lengths(self) -> np.ndarray:
        """How many bytes each id stands for, 0 for end-of-text: int64 of shape (vocab_size,)."""
        return np.array([len(token) for token in self.tokens], dtype=np.int64)

    def saved(self) -> dict[str, Any]:
        """What `TokenizerConfig.restore` needs, in types that JSON has."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write `vocabulary.json` into the folder; the same tokenizer gives the same bytes."""
        content = {"version": VERSION, "name": self.name, **self.saved()}
        text = json.dumps(content, ensure_ascii=False, indent=0) + "\n"
        (folder / FILE).write_bytes(text.encode("utf-8"))


def load(folder: Path) -> Tokenizer:
    """The tokenizer saved in the folder.

    The file is data, whoever wrote it: its name picks one of the variants that there are, and no code is run.

    Raises:
        UserError: no such file, or not one that `Tokenizer.save` writes.
    """
    path = folder / FILE
    content = read_json(path)
    version, name = content.pop("version", None), content.pop("name", None)
    if version != VERSION:
        raise UserError(f"{path}: format version {version!r:.40}, this program reads version {VERSION}")
    if name not in variant_names(__name__):
        listed = ", ".join(variant_names(__name__))
        raise UserError(f"{path}: no tokenizer named {name!r:.40}; there are {listed}")
    variant = variant_class(__name__, name)
    assert issubclass(variant, TokenizerConfig)
    try:
        return variant.restore(content)
    except ValueError as error:
        raise UserError(f"{path}: the tokenizer is damaged: {error}") from None


def with_unknown(tokenizer: Tokenizer, unknown: Unknown) -> Tokenizer:
    """The same tokenizer that does so with a character it does not know; one that knows all stays as it is.

    Raises:
        UserError: it cannot do that.
    """
    saved = tokenizer.saved()
    if saved.get("unknown", unknown) == unknown:
        return tokenizer
    variant = variant_class(__name__, tokenizer.name)
    assert issubclass(variant, TokenizerConfig)
    try:
        return variant.restore({**saved, "unknown": unknown})
    except ValueError as error:
        raise UserError(f"tokenizer.unknown: {error}; take another") from None


def utf8(text: str) -> bytes:
    """The text's bytes.

    Raises:
        UserError: as `encoded`.
    """
    return encoded(text, "utf-8")


def encoded(text: str, encoding: str) -> bytes:
    """The text in one of Unicode's encodings.

    Raises:
        UserError: it holds half of a surrogate pair; such strings come from bytes that are no UTF-8.
    """
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        wrong = f"U+{ord(text[error.start]):04X} at character {error.start}"
        raise UserError(f"text: {wrong} is half of a surrogate pair and no character; remove it") from None
