"""All that is to be known of a text before a training: what `data/prepare.py` shows and warns of."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from gpt.data.dataset import Dataset, Document, Split
from gpt.data.progress import watched
from gpt.data.tokens import Prepared
from gpt.insight.data.exposure import Exposure, exposure
from gpt.insight.data.overlap import Held, Overlap, Search
from gpt.insight.data.survey import SplitSurvey, beginning, survey
from gpt.insight.data.trouble import LONE_CR, MIXED_ENDS, Kind, Place
from gpt.insight.data.vocabulary import TokenUse, token_use
from gpt.model.gpt import GPT
from gpt.training.settings import TrainSettings


@dataclass(frozen=True)
class Trouble:
    """A kind of trouble that the text has, in both splits together."""

    kind: Kind
    count: int
    split: Split
    """Where it stands first."""
    place: Place | None
    """None: a matter of the whole split."""


@dataclass(frozen=True)
class Look:
    """What was seen of a text, its tokens, and the training that is to come."""

    prepared: Prepared
    train: SplitSurvey
    validation: SplitSurvey | None
    overlap: Overlap | None
    """None where there is no validation split."""
    use: TokenUse
    """Of the training split's tokens."""
    exposure: Exposure
    parameters: int
    """Of the model."""

    @property
    def splits(self) -> dict[Split, SplitSurvey]:
        """Those that there are."""
        seen: dict[Split, SplitSurvey | None] = {"train": self.train, "validation": self.validation}
        return {split: survey for split, survey in seen.items() if survey}

    @property
    def counts(self) -> np.ndarray:
        """How often each code point stands in all of the text."""
        return self.train.counts + (self.validation.counts if self.validation else 0)

    def tokens_of(self, split: Split) -> int:
        """How many tokens a split has."""
        return len(self.prepared.train if split == "train" else self.prepared.validation or ())

    @property
    def troubles(self) -> list[Trouble]:
        """Signs that the text was read, converted or joined wrongly."""
        found: dict[Kind, Trouble] = {}
        for split, seen in self.splits.items():
            for kind, count, place in signs(seen):
                first = found.get(kind, Trouble(kind, 0, split, place))
                found[kind] = Trouble(kind, first.count + count, first.split, first.place)
        return [trouble for trouble in found.values() if trouble.count >= trouble.kind.worth]


def signs(seen: SplitSurvey) -> Iterator[tuple[Kind, int, Place | None]]:
    """What of a split is trouble: the signs found in its characters, and its line ends."""
    for kind, (count, place) in seen.found.items():
        yield kind, count, place
    if seen.lone_cr:
        yield LONE_CR, seen.lone_cr, None
    if seen.crlf and seen.lone_lf:
        yield MIXED_ENDS, seen.crlf, None


def look(settings: TrainSettings, dataset: Dataset, prepared: Prepared) -> Look:
    """Read all of a text that has been prepared, validation first, with a bar.

    Args:
        settings: of the training that is to come.
        dataset: the text.
        prepared: its tokens.

    Raises:
        UserError: the text cannot be read, or is too short for the context.
    """
    tokenizer = prepared.tokenizer
    held, validation = Held(), None
    if prepared.validation is not None:
        validation = survey(read(dataset, "validation"), held)
    search = Search(held)
    documents = read(dataset, "train")
    if dataset.max_tokens is not None:
        documents = beginning(documents, prepared.train.counts.text_bytes)
    return Look(
        prepared,
        survey(documents, search if validation else None),
        validation,
        search.found if validation else None,
        token_use(prepared.train, tokenizer.end_of_text, settings.model.context),
        exposure(settings, prepared.capped(settings.eval_tokens)),
        parameters(settings, tokenizer.vocab_size),
    )


def read(dataset: Dataset, split: Split) -> Iterator[Document]:
    """A split's documents, with a bar."""
    return watched(dataset.documents(split), f"looking at {split}", dataset.size(split))


def parameters(settings: TrainSettings, vocab_size: int) -> int:
    """How many the model has, found without making it."""
    with torch.device("meta"):
        return GPT(settings.model.for_vocabulary(vocab_size)).count_parameters()
