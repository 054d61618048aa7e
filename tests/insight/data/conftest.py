from collections.abc import Iterator

import pytest

from gpt.cli import compose
from gpt.data.dataset import Dataset, Document, Split
from gpt.data.tokens import prepare
from gpt.insight.data.look import look
from gpt.training.settings import TrainSettings

TINY = [
    "model.n_layer=1", "model.n_head=1", "model.d_model=16", "model.context=8", "steps=10", "batch_size=2",
    "eval_every=4",
]  # fmt: skip


class Texts(Dataset):
    """Documents given as lists of texts, each in chunks of three characters."""

    name = "texts"

    def __init__(self, train: list[str], validation: list[str], max_tokens: int | None = None) -> None:
        self.splits = {"train": train, "validation": validation}
        self.max_tokens = max_tokens

    def documents(self, split: Split) -> Iterator[Document]:
        for text in self.splits[split]:
            yield [text[i : i + 3] for i in range(0, len(text), 3)]

    def describe(self) -> str:
        return "texts of my own"


@pytest.fixture
def looked(tmp_path):
    """Looks at (train, validation) documents, with train.py's overrides over those of a tiny model on bytes."""

    def looked(train, validation=(), *overrides, max_tokens=None):
        settings, _ = compose("train", ["tokenizer=byte", *TINY, *overrides], TrainSettings)
        dataset = Texts(list(train), list(validation), max_tokens)
        return look(settings, dataset, prepare(dataset, settings.tokenizer, tmp_path, settings.check_data))

    return looked
