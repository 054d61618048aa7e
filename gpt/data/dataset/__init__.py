"""Where text comes from: the contract of a dataset variant."""

import hashlib
from collections.abc import Iterator
from typing import ClassVar, Literal

from gpt.config import Variant

Split = Literal["train", "validation"]

SPLITS: tuple[Split, ...] = ("train", "validation")


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

    def documents(self, split: Split) -> Iterator[str]:
        """The split's documents, one at a time and always in the same order; may be called again."""
        raise NotImplementedError

    def describe(self) -> str:
        """One line for the console: what the text is and how much of it there is."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """A hash, in hex, of every document of both splits: another text has another one."""
        digest = hashlib.sha256()
        for split in SPLITS:
            for document in self.documents(split):
                text = document.encode()
                # The length in front keeps "ab", "c" apart from "a", "bc".
                digest.update(f"{split} {len(text)}\n".encode())
                digest.update(text)
        return digest.hexdigest()
