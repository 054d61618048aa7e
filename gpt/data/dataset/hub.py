"""Data sets of the Hugging Face Hub, data sets laid out on disk in the same way, and files behind URLs.

Nothing is fetched before a document is asked for, so that tokens prepared earlier are found without network.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from gpt.config import ROOT, UserError
from gpt.data.dataset import Dataset, DatasetConfig, Document, Split
from gpt.data.dataset.text import TextConfig
from gpt.data.source import rows
from gpt.data.source.fetch import fetch, local_name
from gpt.data.source.library import check_split, open_builder, reach, told

if TYPE_CHECKING:
    from datasets import DatasetBuilder

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
    """The column that holds the text; each row is a document, and one without text is none."""
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
        scheme, colon, _ = path.partition("://")
        if not path or (colon and scheme not in ("https", "http", "hf")):
            raise ValueError(f"expected user/name, a folder, or a URL of https, http or hf, got {path!r}")
        folder = os.path.expanduser(path)  # noqa: PTH111 - ~nobody stays as it is
        return str(Path(folder).absolute()) if Path(folder).exists() else path

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
        """A hash of the settings, and of the names and bytes of the files of a folder on disk."""
        digest = hashlib.sha256(self.config.model_dump_json().encode())
        folder = Path(self.config.path)
        for file in sorted(folder.rglob("*")) if folder.is_dir() else []:
            if file.is_file():
                with file.open("rb") as opened:
                    digest.update(hashlib.file_digest(opened, "sha256").digest())
                digest.update(repr(file.relative_to(folder).as_posix()).encode())
        return digest.hexdigest()


class Fetched(Hub):
    """Plain text behind a URL: fetched once, and read as one's own."""

    def documents(self, split: Split) -> Iterator[Document]:
        """The split's documents: of one file the text is one, of which validation has the end."""
        fraction = 0.1 if self.config.validation_documents else 0.0
        path = fetch(self.config.path, DOWNLOADS)
        yield from TextConfig(path=str(path), validation_fraction=fraction).build().documents(split)

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
    if "://" in config.path:
        return rows.read_files(files_behind(config.path), config.column)
    if config.streaming and not Path(config.path).is_dir():
        reach(config.path, config.revision)
    builder = open_builder(config.path, config.config, config.revision)
    setting = "dataset.split" if split == config.split else "dataset.validation_split"
    check_split(builder, split if config.streaming else split.partition("[")[0], config.path, setting)
    if config.streaming and (files := tables_of(builder, split)):
        return rows.read_files(files, config.column)
    return texts_of(builder, config, split)


def tables_of(builder: "DatasetBuilder", split: str) -> list[str]:
    """The files of a split, if all are tables whose reading needs no options of the library's."""
    from datasets.packaged_modules.json.json import Json
    from datasets.packaged_modules.parquet.parquet import Parquet

    files = list((builder.config.data_files or {}).get(split, []))
    plain = isinstance(builder, Parquet) or (isinstance(builder, Json) and builder.config.field is None)
    return files if plain and all(map(rows.is_table, files)) else []


def texts_of(builder: "DatasetBuilder", config: HubConfig, split: str) -> Iterator[str]:
    """The texts in the column as the library gives them, and in a CSV as they stand there."""
    from datasets.packaged_modules.csv.csv import Csv

    where, column = config.path, config.column
    if isinstance(builder, Csv):
        with told(where):
            first = builder.as_streaming_dataset(split.partition("[")[0])
        options = rows.csv_options(list(rows.column_types(first, where)))
        builder = open_builder(where, config.config, config.revision, **options)
    with told(where):
        if not config.streaming:
            builder.download_and_prepare()
        table = builder.as_streaming_dataset(split) if config.streaming else builder.as_dataset(split)
    rows.check_column(rows.column_types(table, where), column, where)
    return rows.texts(table.select_columns(column), column, where)


def files_behind(url: str) -> list[str]:
    """The tables behind a URL: those that match, where an hf URL holds *; else one, fetched where it is no hf URL."""
    if not url.startswith("hf://"):
        return [str(fetch(url, DOWNLOADS))]
    if "*" not in url:
        return [url]
    import fsspec

    with told(url):
        system, _, found = fsspec.get_fs_token_paths(url)
        files = [system.unstrip_protocol(path) for path in sorted(found)]
    if not files:
        raise UserError(f"{url}: no file matches; see its files at huggingface.co")
    return files
