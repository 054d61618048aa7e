"""Where text comes from: the contract of a dataset variant."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from gpt.config import Variant

Split = Literal["train", "validation"]

SPLITS: tuple[Split, ...] = ("train", "validation")

Document = Iterable[str]
"""A document's text, in chunks whose bounds mean nothing: it may be far larger than memory. It is read once, before
the next document is asked for."""


class DatasetConfig(Variant):
    """A dataset variant's configuration."""

    def build(self) -> "Dataset":
        """The dataset, ready to be read.

        Raises:
            UserError: there is no such text.
        """
        raise NotImplementedError


class Dataset:
    """Documents of text in two splits; validation may be empty."""

    name: ClassVar[str]
    """The variant's name, for people: the name of prepared tokens begins with it."""

    max_tokens: int | None = None
    """Training ends after so many tokens, within a document if need be; the rest is not read."""

    def documents(self, split: Split) -> Iterator[Document]:
        """The split's documents, one at a time and always in the same order; may be called again.

        Raises:
            UserError: while reading, for text that cannot be read or is not what the settings say.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """One line for the console: what the text is and how much of it there is."""
        raise NotImplementedError

    def size(self, split: Split) -> int | None:
        """About how many bytes the split's text has, so that a bar can say how long it takes; None: not known."""
        return None

    def fingerprint(self) -> str:
        """A hash, in hex, that changes with any change of a document, here of all their text.

        Raises:
            UserError: as `documents`.
        """
        digest = hashlib.sha256()
        for split in SPLITS:
            for document in self.documents(split):
                length = 0
                for chunk in document:
                    text = chunk.encode()
                    digest.update(text)
                    length += len(text)
                # The length, in a place of fixed size behind the text, keeps "ab", "c" apart from "a", "bc".
                digest.update(length.to_bytes(8, "little") + split.encode()[:1])
        return digest.hexdigest()
