"""People's own text: a file, a folder or a glob, of plain text and of tables."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from gpt.config import UserError
from gpt.data.dataset import Dataset, DatasetConfig, Document, Split
from gpt.data.source import holdout, paths, plain, rows, streams

MANY = 20
"""Documents from which on whole ones are held out: the default tenth is two of them."""


class TextConfig(DatasetConfig):
    """Text of your own: plain text, JSON lines, CSV, TSV and parquet, compressed as .gz or not."""

    name: Literal["text"] = "text"
    path: str
    """A file; a folder, for all .txt .md .jsonl .csv .tsv .parquet below it, also with .gz; or a glob such as
    'notes/**/*.rst'. Any other file is plain text. What is hidden is left out; links to folders are not followed."""
    validation_path: str | None = None
    """Files of their own for validation, named in the same way; nothing of dataset.path is held out then."""
    holdout: Literal["auto", "document", "tail"] = "auto"
    """What is held out for validation: whole documents, evenly spread, or the tail of the text; auto: documents where
    there are 20 or more."""
    validation_fraction: float = Field(default=0.1, ge=0, lt=1)
    """The share of the documents, or of the text, that is held out; 0: none."""
    column: str = "text"
    """The column of tables that holds the text; each row is a document."""
    encoding: str = "utf-8"
    """How the files are encoded, whatever the locale; a leading byte order mark is dropped."""
    errors: rows.Errors = "error"
    """What becomes of bytes that are no text: an error that says where they are, or U+FFFD in their place."""
    newline: plain.Newline = "keep"
    """What becomes of line ends, in tables too: kept, or each CRLF and each lone CR made a LF."""
    separator: str | None = Field(default=None, min_length=1)
    r"""What stands between documents in plain text: '\n' makes each line a document; null: each file is one."""

    @field_validator("path", "validation_path")
    @classmethod
    def is_absolute(cls, path: str | None) -> str | None:
        """From now on it means the same from any folder."""
        if path == "":
            raise ValueError("expected a file, a folder or a glob, got nothing")
        return path and str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111 - ~nobody stays as it is

    @field_validator("encoding")
    @classmethod
    def is_of_text(cls, encoding: str) -> str:
        """It is a name that Python knows."""
        plain.codec_of(encoding)
        return encoding

    def build(self) -> "Text":
        """The dataset.

        Raises:
            UserError: there are no such files, or one of them is named for both splits.
        """
        files = paths.files_at(Path(self.path), "dataset.path")
        own = self.validation_path
        validation = paths.files_at(Path(own), "dataset.validation_path") if own else []
        for both in {file.resolve() for file in files} & {file.resolve() for file in validation}:
            raise UserError(f"dataset.validation_path: {both} is in dataset.path too; take it out of one of them")
        return Text(self, files, validation)


class Text(Dataset):
    """The documents of files, in the order of the files; one without text is none.

    Args:
        config: how they are read and held out.
        files: for training, and for validation what is held out of them, unless it has its own.
        validation: its own files, or none.
    """

    name: ClassVar[str] = "text"

    def __init__(self, config: TextConfig, files: Sequence[Path], validation: Sequence[Path]) -> None:
        self.config = config
        self.files = files
        self.validation = validation
        self.fraction = holdout.exact(0 if validation else config.validation_fraction)

    def documents(self, split: Split) -> Iterator[Document]:
        """The split's documents."""
        if not self.fraction:
            return self.read(self.files if split == "train" else self.validation)
        if self.by_document:
            return holdout.by_document(self.read(self.files), self.fraction, split)
        return holdout.by_tail(self.read(self.files), self.cut, split)

    def read(self, files: Sequence[Path]) -> Iterator[Document]:
        """All documents of the files, of which there must be one."""
        config = self.config
        text = plain.PlainText(config.encoding, config.errors, config.newline, config.separator)
        found = False
        for file in files:
            if paths.kind(file):
                table = rows.read_files([str(file)], config.column, config.encoding, config.errors)
                documents: Iterator[Document] = (
                    list(plain.with_newlines([row], config.newline)) for row in table if row
                )
            else:
                documents = text.documents(file)
            for document in documents:
                found = True
                yield document
        if files and not found:
            path = config.path if files is self.files else config.validation_path
            raise UserError(f"{path}: there is no text in it; name a file that has some")

    @cached_property
    def by_document(self) -> bool:
        """Whether whole documents are held out, and not the tail."""
        if self.config.holdout != "auto":
            return self.config.holdout == "document"
        if self.config.separator is None and len(self.files) < MANY and not any(map(paths.kind, self.files)):
            return False  # a file of plain text is one document at most: none need be read to see that they are few
        return next(islice(self.read(self.files), MANY - 1, None), None) is not None

    @cached_property
    def cut(self) -> int:
        """How many characters come before the tail: counted once, by reading them all."""
        return holdout.cut_at(streams.count_characters(self.read(self.files)), self.fraction)

    def describe(self) -> str:
        """Files, size, and how validation is made."""
        share = f"{100 * self.config.validation_fraction:g} %"
        if self.validation:
            made = f"validation has {amount(self.validation)}"
        elif self.fraction:
            made = f"{f'{share} of the documents' if self.by_document else f'the last {share}'} held out for validation"
        else:
            made = "nothing held out for validation"
        texts = [file for file in [*self.files, *self.validation] if not paths.kind(file)]
        marks = sum(plain.begins_with_mark(file, self.config.encoding) for file in texts)
        of_how_many = f" from {marks:,} of them" if len(texts) > 1 else ""
        dropped = f"; a leading byte order mark dropped{of_how_many}" if marks else ""
        separated = "" if self.config.separator is None else f", documents separated by {self.config.separator!r}"
        return f"{amount(self.files)}{separated}; {made}{dropped}"

    def size(self, split: Split) -> int | None:
        """From the sizes of the files; None where one is compressed."""
        if any(plain.is_gzip(file) or paths.kind(file) == "parquet" for file in [*self.files, *self.validation]):
            return None
        if not self.fraction:
            return bytes_in(self.files if split == "train" else self.validation)
        held_out = int(bytes_in(self.files) * self.fraction)
        return held_out if split == "validation" else bytes_in(self.files) - held_out

    def fingerprint(self) -> str:
        """A hash of the files' order, kinds and bytes and of how they are read; of no names and no times."""
        settings = self.config.model_dump(exclude={"path", "validation_path"})
        facts = [settings, *([fact(file) for file in files] for files in (self.files, self.validation))]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def fact(file: Path) -> list[str | bool]:
    """What a file is, and a hash of its bytes as they are on disk."""
    with plain.readable(file), file.open("rb") as opened:
        return [paths.kind(file), plain.is_gzip(file), hashlib.file_digest(opened, "sha256").hexdigest()]


def bytes_in(files: Sequence[Path]) -> int:
    """The size of files on disk."""
    size = 0
    for file in files:
        with plain.readable(file):
            size += file.stat().st_size
    return size


def amount(files: Sequence[Path]) -> str:
    """Files and their size, for people."""
    size = bytes_in(files)
    number = "1 file" if len(files) == 1 else f"{len(files):,} files"
    return f"{number}, {f'{size / 1e6:,.1f} MB' if size >= 1e5 else f'{size:,} bytes'}"
