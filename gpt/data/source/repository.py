"""Data sets as the library `datasets` finds them: repositories of the Hub, and folders laid out as one."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpt.config import UserError
from gpt.data.source import rows
from gpt.data.source.columns import check_column, column_types, texts
from gpt.data.source.library import check_split, open_builder, reach, told
from gpt.data.source.wording import listed

if TYPE_CHECKING:
    from datasets import DatasetBuilder

ASIDE = {"config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "requirements.txt"}
"""Files that lie beside the data."""

PLAIN = (".txt", ".md")
"""How the names of plain text end."""


@dataclass(frozen=True)
class Repository:
    """A data set, and how its rows are read."""

    path: str
    """Its name on the Hub, or a folder."""
    config: str | None
    """Its configuration, where it has several."""
    revision: str | None
    """A commit, branch or tag."""
    column: str
    """The column that holds the text."""
    streaming: bool
    """Whether rows are read as they come, or all is downloaded first."""
    joined: bool
    """Whether rows are parts of one text: lines of plain text keep their ends then."""
    encoding: str
    """Of plain text, JSON and CSV; where it is utf-8, the data set itself may name another."""
    errors: rows.Errors
    """What becomes of bytes that are no text in that encoding."""

    def texts(self, split: str, setting: str) -> Iterator[str]:
        """The texts in the column of all rows of a split, nulls left out.

        Args:
            split: its name; a slice of it where the data set is downloaded first.
            setting: that names the split.

        Raises:
            UserError: it cannot be reached or read, or there is no such configuration, split or column of text.
        """
        builder = self.builder()
        name = split if self.streaming else split.partition("[")[0]
        check_split(builder, name, self.path, setting)
        files = list((builder.config.data_files or {}).get(name, []))
        if self.streaming and self.plain(builder) and files and all(map(rows.is_table, files)):
            encoding = self.options(builder).get("encoding") or getattr(builder.config, "encoding", None) or "utf-8"
            return rows.read_files(files, self.column, encoding, self.errors)
        return self.through_library(self.exact(builder, files), split)

    def builder(self) -> "DatasetBuilder":
        """What of the library reads it; a folder must have no text that it would leave out."""
        if not Path(self.path).is_dir():
            reach(self.path, self.revision, kept=not self.streaming)
            return open_builder(self.path, self.config, self.revision)
        folder = Path(self.path).resolve()  # as the library does; the files themselves may be links
        found = [] if names_files(folder) else text_files(folder)
        if len(formats := {kind for _, kind in found}) > 1:
            # Before the library looks for files, which takes it minutes in a folder that is no data set.
            counts = {kind: sum(other == kind for _, other in found) for kind in formats}
            most = max(sorted(counts), key=counts.__getitem__)
            self.refuse([file for file, kind in found if kind != most])
        builder = open_builder(self.path, self.config, self.revision)
        used = {Path(file) for files in (builder.config.data_files or {}).values() for file in files}
        self.refuse([file for file, _ in found if file not in used])
        return builder

    def refuse(self, ignored: list[Path]) -> None:
        """Refuse to lose files, if there are some.

        Raises:
            UserError: there are.
        """
        if ignored:
            names = listed(sorted(file.relative_to(Path(self.path).resolve()).as_posix() for file in ignored), most=5)
            raise UserError(
                f"{self.path}: these files would be ignored: {names}; read all with dataset=text, "
                "or name data_files in the folder's README.md"
            )

    def files(self) -> list[Path]:
        """What is read of a folder, and what says how; none of a name on the Hub."""
        folder = Path(self.path)
        if not folder.is_dir():
            return []
        data = [Path(file) for files in (self.builder().config.data_files or {}).values() for file in files]
        cards = [folder / name for name in ("README.md", ".huggingface.yaml", "dataset_infos.json")]
        return [file for file in sorted({*data, *cards}) if file.is_file()]

    def options(self, builder: "DatasetBuilder") -> dict[str, Any]:
        """What is set and not left to the data set, of loaders that decode."""
        if not hasattr(builder.config, "encoding_errors"):
            return {}
        options = {"encoding": self.encoding} if self.encoding != "utf-8" else {}
        if self.errors == "replace":
            options["encoding_errors"] = "replace"
            if builder.config.encoding == "utf-8":
                # The same under another name: by this one JSON is left to pyarrow, which replaces nothing.
                options.setdefault("encoding", "utf8")
        return options

    def plain(self, builder: "DatasetBuilder") -> bool:
        """Whether its files are tables whose reading needs no other options of the library's."""
        from datasets.packaged_modules.csv.csv import Csv
        from datasets.packaged_modules.json.json import Json
        from datasets.packaged_modules.parquet.parquet import Parquet

        if isinstance(builder, Csv):
            return set(csv_settings(builder)) <= {"encoding"}
        return isinstance(builder, Parquet) or (isinstance(builder, Json) and builder.config.field is None)

    def exact(self, builder: "DatasetBuilder", files: list[str]) -> "DatasetBuilder":
        """The same with options that keep the text as it stands in the files."""
        from datasets.packaged_modules.csv.csv import Csv
        from datasets.packaged_modules.text.text import Text

        options = self.options(builder)
        if isinstance(builder, Csv):
            settings = {**csv_settings(builder), **options}
            found = [rows.csv_options(file, self.column, settings) for file in files]
            options = next(filter(None, found), options)
        elif isinstance(builder, Text):
            options["keep_linebreaks"] = self.joined
        return open_builder(self.path, self.config, self.revision, **options) if options else builder

    def through_library(self, builder: "DatasetBuilder", split: str) -> Iterator[str]:
        """The texts as the library gives them."""
        with told(self.path):
            if not self.streaming:
                builder.download_and_prepare()
            table = builder.as_streaming_dataset(split) if self.streaming else builder.as_dataset(split)
        check_column(column_types(table, self.path), self.column, self.path)
        return texts(table.select_columns(self.column), self.column, self.path)


def csv_settings(builder: "DatasetBuilder") -> dict[str, Any]:
    """What a data set itself says of how its CSV are read; that a .tsv has tabs goes without saying."""
    from datasets.packaged_modules.csv.csv import CsvConfig

    usual = CsvConfig().pd_read_csv_kwargs
    return {key: value for key, value in builder.config.pd_read_csv_kwargs.items() if value != usual.get(key)}


def names_files(folder: Path) -> bool:
    """Whether the folder itself says which of its files are data."""
    from huggingface_hub.repocard import metadata_load

    card = folder / "README.md"
    with told(str(card)):
        return (folder / ".huggingface.yaml").exists() or (card.is_file() and "configs" in (metadata_load(card) or {}))


def text_files(folder: Path) -> list[tuple[Path, str]]:
    """Files below a folder that hold text, by their names, and the format of each.

    What is hidden is left out, and so is what lies beside the data, as README.md, LICENSE.txt and other plain text
    with a name in capitals does.
    """
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        for name in sorted(names):
            kind = rows.ending(name) or Path(name.lower().removesuffix(".gz")).suffix
            about = kind in PLAIN and name.partition(".")[0].isupper()
            if (rows.ending(name) or kind in PLAIN) and not (name.startswith(".") or name in ASIDE or about):
                found.append((Path(here, name), "json" if "json" in kind else kind))
    return found
