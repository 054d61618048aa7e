"""Multi-query associative recall (Arora et al. 2023, Zoology, arXiv:2312.04927): pairs to remember, then questions.

    a row:     pair  blank  pair  pair  blank ...   key  key  key  key  key ...
    target:      -     -      -     -     -         the value that each key was paired with

There is a token for each pair of a key and a value, so one layer can find an answer: what is compared is what an
attention remembers, and not how well two layers learn to join a key with the value after it. The first half of a row
holds its pairs in random places, the second half asks for them in random order; so how far away an answer is, and how
many pairs there are to tell apart, do not depend on each other.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from gpt.data.batches import IGNORE


class Batch(NamedTuple):
    """Rows of the task, each of shape (rows, 2 · places)."""

    tokens: Tensor
    """int64."""
    targets: Tensor
    """int64: the value at a question, `IGNORE` elsewhere."""
    distance: Tensor
    """int64: how many tokens before a question its pair stands; 0 where nothing is asked."""
    pairs: Tensor
    """(rows,) int64: how many pairs a row has."""

    def to(self, device: torch.device) -> Self:
        """The same on `device`."""
        return type(self)(*(tensor.to(device) for tensor in self))


class Recall(NamedTuple):
    """The task."""

    places: int
    """For pairs in a row, as many as there are keys; and as many questions follow."""
    values: int
    """Different ones: a guess is right once in so many."""
    pairs: Sequence[int]
    """How many a row has; the rows of a batch take these numbers in turn."""

    @property
    def vocab_size(self) -> int:
        """A blank, the keys, the values, and the pairs of both, in that order."""
        return 1 + self.places + self.values + self.places * self.values

    def key(self, key: Tensor) -> Tensor:
        """The tokens that ask for keys 0, 1, ..."""
        return 1 + key

    def value(self, value: Tensor) -> Tensor:
        """The tokens of values 0, 1, ..."""
        return 1 + self.places + value

    def pair(self, key: Tensor, value: Tensor) -> Tensor:
        """The tokens that pair keys with values."""
        return 1 + self.places + self.values + key * self.values + value

    def batch(self, seed: int, step: int, rows: int) -> Batch:
        """The rows of a step: a pure function, on the host."""
        generator = np.random.default_rng((seed, step))
        pairs = torch.tensor(self.pairs)[torch.arange(rows) % len(self.pairs)]
        ordered = np.tile(np.arange(self.places), (rows, 1))
        keys, place = (torch.from_numpy(generator.permuted(ordered, axis=1)) for _ in range(2))
        values = torch.from_numpy(generator.integers(self.values, size=ordered.shape))
        there = torch.arange(self.places) < pairs[:, None]  # of the shuffled keys a row has the first ones
        told = torch.zeros_like(keys).scatter(1, place, self.pair(keys, values) * there)

        asked = torch.from_numpy(generator.integers(pairs[:, None].numpy(), size=ordered.shape))
        key, value, at = (of_pair.gather(1, asked) for of_pair in (keys, values, place))
        distance = torch.arange(self.places, 2 * self.places) - at
        nothing = torch.zeros_like(told)
        return Batch(
            torch.cat((told, self.key(key)), dim=1),
            torch.cat((nothing + IGNORE, self.value(value)), dim=1),
            torch.cat((nothing, distance), dim=1),
            pairs,
        )
