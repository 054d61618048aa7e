"""Data sets of the Hugging Face Hub, data sets laid out on disk in the same way, and files behind URLs.

Nothing is fetched before a document is asked for, so that tokens prepared earlier are found without network.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from gpt.config import ROOT, UserError
from gpt.data.dataset import Dataset, DatasetConfig, Document, Split
from gpt.data.dataset.text import TextConfig
from gpt.data.source import plain, rows
from gpt.data.source.fetch import fetch, local_name, noting
from gpt.data.source.library import told
from gpt.data.source.repository import Repository

DOWNLOADS = ROOT / "data" / "downloads"
"""Where files behind URLs are kept."""

REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
"""The name of a data set on the Hub: user/name; a few have no user."""


class HubConfig(DatasetConfig):
    """A data set of the Hugging Face Hub, or a file behind a URL."""

    name: Literal["hub"] = "hub"
    path: str
    """A name on the Hub such as roneneldan/TinyStories; a folder on disk laid out as a data set; or the URL (https,
    http, hf) of a table or of plain text, where an hf URL of tables may hold *. What lies behind a name or a URL is
    taken not to change."""
    config: str | None = None
    """The data set's configuration, where it has several: sample-10BT."""
    split: str = "train"
    """The split to train on."""
    validation_split: str | None = None
    """The split for validation; null: the first documents of the other one are held out."""
    validation_documents: int = Field(default=1000, ge=0)
    """How many documents (joined: rows) are held out where there is no validation_split; 0: none. Of plain text behind
    a URL the last tenth is held out, unless this is 0."""
    column: str = "text"
    """The column that holds the text; each row is a document, and one without text is none. Of plain text each line is
    a row: joined, it keeps its line end, CRLF as LF; as a document it has none."""
    encoding: str = "utf-8"
    """How plain text, JSON and CSV are encoded, unless the data set says that itself."""
    errors: rows.Errors = "error"
    """What becomes of bytes that are no text in that encoding: an error, or U+FFFD in their place."""
    revision: str | None = None
    """A commit, branch or tag: a commit pins what lies behind a name. refs/convert/parquet serves a data set that would
    need a script."""
    streaming: bool = True
    """Whether the rows are read as they come; false: the data set is first downloaded and kept by the library."""
    joined: bool = False
    """Whether all rows are parts of one document, as the lines of WikiText are, with nothing put between them."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Training ends after so many tokens, and the rest is not read; null: all."""

    @field_validator("path")
    @classmethod
    def is_absolute_or_elsewhere(cls, path: str) -> str:
        """A folder that is there means the same from any folder from now on."""
        scheme, colon, rest = path.partition("://")
        if not path or (colon and scheme.lower() not in ("https", "http", "hf")):
            raise ValueError(f"expected user/name, a folder, or a URL of https, http or hf, got {path!r}")
        if colon:
            try:
                urlsplit(path)
            except ValueError as error:
                raise ValueError(f"{path!r} is no URL: {error}") from None
            return f"{scheme.lower()}://{rest}"
        folder = os.path.expanduser(path)  # noqa: PTH111 - ~nobody stays as it is
        return str(Path(folder).absolute()) if Path(folder).exists() else path

    @field_validator("encoding")
    @classmethod
    def is_of_text(cls, encoding: str) -> str:
        """It is a name that Python knows."""
        plain.codec_of(encoding)
        return encoding

    @model_validator(mode="after")
    def is_consistent(self) -> "HubConfig":
        """A URL is one split, and validation is another split."""
        if "://" in self.path and (self.split, self.config, self.validation_split, self.revision) != (
            "train",
            *[None] * 3,
        ):
            raise ValueError(
                "a URL has no config, split, validation_split or revision; leave these out, "
                "or set dataset.path to the data set's name"
            )
        if self.split == self.validation_split:
            raise ValueError(
                f"split and validation_split are both {self.split}; set validation_split to another or null"
            )
        return self

    def build(self) -> "Hub":
        """The dataset.

        Raises:
            UserError: the path can be no data set's.
        """
        if "://" in self.path:
            return Hub(self) if rows.is_table(self.path) else Fetched(self)
        if Path(self.path).is_file():
            raise UserError(f"dataset.path: {self.path} is a file; read it with: dataset=text dataset.path={self.path}")
        if not Path(self.path).is_dir() and not REPOSITORY.fullmatch(self.path):
            raise UserError(f"dataset.path: there is no folder {self.path}; a data set of the Hub is named user/name")
        return Hub(self)


class Hub(Dataset):
    """The rows of a data set's splits, or of the tables behind a URL."""

    name: ClassVar[str] = "hub"

    def __init__(self, config: HubConfig) -> None:
        self.config = config
        self.max_tokens = config.max_tokens

    def documents(self, split: Split) -> Iterator[Document]:
        """The split's documents."""
        config = self.config
        if split == "validation" and not (config.validation_split or config.validation_documents):
            return
        texts = self.texts(split)
        if config.joined:
            yield texts
        else:
            yield from ([text] for text in texts)

    def texts(self, split: Split) -> Iterator[str]:
        """The texts of the split's rows that have some."""
        config = self.config
        if config.validation_split:
            return filter(None, read(config, config.split if split == "train" else config.validation_split))
        return hold_out(filter(None, read(config, config.split)), config.validation_documents, split, config.path)

    def describe(self) -> str:
        """What is known without network: the settings."""
        config = self.config
        held_out = f"the first {config.validation_documents:,} {'rows' if config.joined else 'documents'} held out"
        made = f"split {config.validation_split}" if config.validation_split else held_out
        if not (config.validation_split or config.validation_documents):
            made = "nothing held out"
        most = f", {config.max_tokens:,} tokens at most" if config.max_tokens else ""
        named = config.path if "://" in config.path else f"{config.path}, split {config.split}"
        return f"{named}{f' of {config.config}' if config.config else ''}{most}; {made} for validation"

    def fingerprint(self) -> str:
        """A hash of the settings, and of the names and bytes of what is read of a folder on disk."""
        digest = hashlib.sha256(self.config.model_dump_json().encode())
        if "://" not in self.config.path:
            for file in repository(self.config).files():
                with plain.readable(file), file.open("rb") as opened:
                    digest.update(hashlib.file_digest(opened, "sha256").digest())
                digest.update(repr(os.path.relpath(file.resolve(), Path(self.config.path).resolve())).encode())
        return digest.hexdigest()


class Fetched(Hub):
    """Plain text behind a URL: fetched once, and read as one's own."""

    def documents(self, split: Split) -> Iterator[Document]:
        """The split's documents: of one file the text is one, of which validation has the end."""
        fraction = 0.1 if self.config.validation_documents else 0.0
        config = self.config
        path = fetch(config.path, DOWNLOADS)
        text = TextConfig(
            path=str(path), validation_fraction=fraction, encoding=config.encoding, errors=config.errors
        ).build()
        yield from noting(
            (noting(document, config.path, path) for document in text.documents(split)), config.path, path
        )

    def describe(self) -> str:
        """What is known without network."""
        made = "the last 10 %" if self.config.validation_documents else "nothing"
        return f"{self.config.path}; {made} held out for validation"

    def size(self, split: Split) -> int | None:
        """From the size of the file, once that is there."""
        path = DOWNLOADS / local_name(self.config.path)
        return path.stat().st_size if path.exists() and path.suffix != ".gz" else None


def hold_out(texts: Iterable[str], number: int, split: Split, path: str) -> Iterator[str]:
    """The first texts for validation, or the others for training.

    Raises:
        UserError: more would be held out than is left.
    """
    count = 0
    for count, text in enumerate(texts, 1):
        if (count <= number) == (split == "validation"):
            yield text
        elif split == "validation":
            return
    if count < 2 * number:
        raise UserError(
            f"{path}: there are only {count:,} documents with text, and {number:,} would be held out; "
            f"set dataset.validation_documents to {count // 10:,}, or dataset.validation_split"
        )


def read(config: HubConfig, split: str) -> Iterator[str]:
    """The texts in the column of all rows of a split, nulls left out.

    Raises:
        UserError: it cannot be reached or read, or there is no such configuration, split or column of text.
    """
    if "://" not in config.path:
        setting = "dataset.split" if split == config.split else "dataset.validation_split"
        return repository(config).texts(split, setting)
    if config.path.startswith("hf://"):
        return rows.read_files(files_behind(config.path), config.column, config.encoding, config.errors)
    path = fetch(config.path, DOWNLOADS)
    return noting(rows.read_files([str(path)], config.column, config.encoding, config.errors), config.path, path)


def repository(config: HubConfig) -> Repository:
    """What reads a name on the Hub, or a folder."""
    settings = {key: getattr(config, key) for key in Repository.__dataclass_fields__}
    return Repository(**settings)


def files_behind(url: str) -> list[str]:
    """The tables behind an hf URL: those that match, where it holds *; else one."""
    if "*" not in url:
        return [url]
    import fsspec

    with told(url):
        system, _, found = fsspec.get_fs_token_paths(url)
        files = [system.unstrip_protocol(path) for path in sorted(found)]
    if not files:
        raise UserError(f"{url}: no file matches; see its files at huggingface.co")
    return files
