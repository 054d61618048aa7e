from collections.abc import Iterator

import pytest

from gpt.data.dataset import Dataset, Document, Split


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
