"""What is known of the text of a training that is to come, without reading much of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpt.config import ROOT, UserError
from gpt.data.batches import Batches
from gpt.data.dataset import SPLITS, Dataset, Document, Split
from gpt.data.tokenizer import Tokenizer
from gpt.data.tokens import Prepared, place_of
from gpt.files import nearby
from gpt.training.settings import TrainSettings

LARGE = 100_000_000
"""Bytes of text from which on a plan does not wait until they are tokens: that takes a minute or longer."""


class Planned(NamedTuple):
    """The data of a training."""

    vocabulary: int
    """Of the tokenizer."""
    data: Prepared | None
    """Its tokens; None where they are neither prepared nor quickly made."""
    description: str

    def batches(self, settings: TrainSettings) -> Batches:
        """The training's; of random tokens where its own are not known."""
        context = settings.model.context
        if self.data:
            return Batches(self.data.train, context, settings.batch_size, settings.seed)
        draw = np.random.default_rng(settings.seed)
        tokens = draw.integers(self.vocabulary, size=2 * context * (1 + settings.batch_size), dtype=np.uint32)
        return Batches(tokens, context, settings.batch_size, settings.seed)


class NeedsTextError(Exception):
    """A tokenizer asked for the text."""


def planned(settings: TrainSettings, tokenizer: Tokenizer | None, folder: Path = ROOT / "data") -> Planned:
    """The data: prepared tokens where there are some, else a small text's, made now and kept as train.py does.

    Of a text that is large, or of unknown size since it is not fetched, as much as can be told without it.

    Args:
        settings: of the training.
        tokenizer: one that there is already.
        folder: where prepared tokens live.

    Raises:
        UserError: as of `TrainSettings.prepare_data`; or nothing tells the size of the vocabulary.
    """
    dataset = settings.dataset.build()
    if is_small(dataset) or place_of(dataset, tokenizer or settings.tokenizer, folder).exists():
        data = settings.prepare_data(folder, tokenizer)
        return Planned(data.tokenizer.vocab_size, data, data.description)
    size = vocabulary(settings) if tokenizer is None else tokenizer.vocab_size
    prepare = nearby(ROOT / "data" / "prepare.py")
    return Planned(size, None, f"not prepared; python {prepare} with the same settings makes its tokens")


def is_small(dataset: Dataset) -> bool:
    """Whether a text, or what training reads of it, is soon tokens."""
    sizes = [dataset.size(split) for split in SPLITS]
    return all(size is not None for size in sizes) and sum(size or 0 for size in sizes) < LARGE


def vocabulary(settings: TrainSettings) -> int:
    """The size that a tokenizer's vocabulary will have, at most; without the text.

    Raises:
        UserError: it will be learned, and nothing tells of what size.
    """

    def no_text(_: Split) -> Iterator[Document]:
        raise NeedsTextError

    try:
        return settings.tokenizer.build(no_text).vocab_size
    except NeedsTextError:
        size: int | None = getattr(settings.tokenizer, "vocab_size", None) or settings.model.vocab_size
    if size is None:
        raise UserError(
            f"tokenizer: {settings.tokenizer.name} learns its vocabulary from the text, which is large or not there "
            f"yet; run python {nearby(ROOT / 'data' / 'prepare.py')} with the same settings first"
        )
    return size
