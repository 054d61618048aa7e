import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpt.config import ROOT
from gpt.data.dataset import Dataset, Document, Split

CORPORA = ROOT.parent / "shared" / "corpora"


class Texts(Dataset):
    """Documents given as lists of texts; each comes in chunks of `chunk` characters."""

    name = "texts"

    def __init__(self, train: list[str], validation: list[str], chunk: int = 3) -> None:
        self.splits = {"train": train, "validation": validation}
        self.chunk = chunk

    def documents(self, split: Split) -> Iterator[Document]:
        for text in self.splits[split]:
            yield (text[i : i + self.chunk] for i in range(0, len(text), self.chunk))

    def describe(self) -> str:
        return "texts"


@pytest.fixture
def texts():
    """Makes a dataset of (train, validation) documents."""
    return Texts


@functools.cache
def corpus_files() -> dict[str, str]:
    """Name -> text of the text files in the shared corpora, as they are; empty where there are none."""
    return {
        str(path.relative_to(CORPORA)): path.read_bytes().decode("utf-8")
        for path in sorted(CORPORA.rglob("*"))
        if path.suffix in {".txt", ".inp"} and path.name != "SOURCES.md"
    }


@pytest.fixture
def corpora() -> dict[str, str]:
    if not corpus_files():
        pytest.skip(f"needs the text files of {Path(*CORPORA.parts[-2:])} beside the checkout")
    return corpus_files()
