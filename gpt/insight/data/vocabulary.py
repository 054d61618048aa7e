"""What training makes of a vocabulary: how often each token is shown, and how long documents are in tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpt.data.token_file import TokenFile

BLOCK = 1 << 20
"""Tokens that are looked at together."""


@dataclass(frozen=True)
class TokenUse:
    """A split's tokens."""

    counts: np.ndarray
    """How often each id stands there: int64, (vocab_size,)."""
    shorter: int
    """Documents that have fewer tokens than the context."""
    longer: int
    """Documents that have more."""

    @property
    def unseen(self) -> np.ndarray:
        """The ids that never occur."""
        return np.flatnonzero(self.counts == 0)

    def fewer_than(self, times: int) -> int:
        """How many ids occur less often than so many times."""
        return int((self.counts < times).sum())

    def commonest(self, most: int) -> list[tuple[int, float]]:
        """At most so many ids that occur, the most frequent first, each with its share of all tokens."""
        order = np.argsort(-self.counts, kind="stable")[:most]
        return [(int(i), float(self.counts[i] / self.counts.sum())) for i in order if self.counts[i]]


def token_use(file: TokenFile, end_of_text: int | None, context: int) -> TokenUse:
    """Count a split's ids, block by block.

    Args:
        file: is not read into memory as a whole.
        end_of_text: what stands after each document; None: all is one document.
        context: tokens of a sequence.
    """
    tokens, counts = file.tokens, np.zeros(file.vocab_size, np.int64)
    for first in range(0, len(tokens), BLOCK):
        block = tokens[first : first + BLOCK]
        file.check_ids(int(block.max()))
        counts += np.bincount(block, minlength=file.vocab_size)
    shorter = longer = 0
    for lengths in document_lengths(tokens, end_of_text):
        shorter += int((lengths < context).sum())
        longer += int((lengths > context).sum())
    return TokenUse(counts, shorter, longer)


def document_lengths(tokens: np.ndarray, end_of_text: int | None) -> Iterator[np.ndarray]:
    """The documents' lengths without end-of-text, in order and in several arrays.

    >>> [part.tolist() for part in document_lengths(np.array([5, 6, 0, 0, 7]), end_of_text=0)]
    [[2, 0], [1]]
    """
    begin = 0
    for first in range(0, len(tokens), BLOCK) if end_of_text is not None else ():
        ends = np.flatnonzero(tokens[first : first + BLOCK] == end_of_text) + first
        if len(ends):
            yield np.diff(ends, prepend=begin - 1) - 1
            begin = int(ends[-1]) + 1
    if begin < len(tokens):
        yield np.array([len(tokens) - begin])
