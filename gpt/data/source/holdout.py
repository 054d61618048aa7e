"""The shares of a stream of documents that train and validation have.

By document, the middle one of every so many is held out, so that validation covers the whole; by tail, the last part of
all characters, as nanoGPT does. Shares are exact: fractions, not floats, count to billions without drift.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from gpt.data.dataset import Document, Split
from gpt.data.source.streams import drain, grouped, marked


def exact(fraction: float) -> Fraction:
    """A share as it was typed: 0.1 is one tenth.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(str(fraction))


def held_out(index: int, fraction: Fraction) -> bool:
    """Whether document `index`, counted from 0, is for validation: of n documents, n · fraction, rounded, are.

    >>> [index for index in range(40) if held_out(index, exact(0.1))]
    [4, 14, 24, 34]
    """
    return rounded(index + 1, fraction) > rounded(index, fraction)


def rounded(count: int, fraction: Fraction) -> int:
    """The nearest whole number to count · fraction, of two the upper one."""
    p, q = fraction.as_integer_ratio()
    return (2 * count * p + q) // (2 * q)


def by_document(documents: Iterable[Document], fraction: Fraction, split: Split) -> Iterator[Document]:
    """The documents of one split, of which validation has every so many-th."""
    for index, document in enumerate(documents):
        if held_out(index, fraction) == (split == "validation"):
            yield document
        else:
            drain(document)


def cut_at(characters: int, fraction: Fraction) -> int:
    """How many of all the characters are for training, where the last ones are held out.

    >>> cut_at(1_115_394, exact(0.1)) == int(1_115_394 * 0.9)
    True
    """
    return int(characters * (1 - fraction))


def by_tail(documents: Iterable[Document], cut: int, split: Split) -> Iterator[Document]:
    """The documents of one split: train has the first `cut` characters, and the document at the cut is cut in two."""
    chunks = marked(documents)
    return grouped(_before(chunks, cut) if split == "train" else _behind(chunks, cut))


def _before(chunks: Iterable[str | None], cut: int) -> Iterator[str | None]:
    for chunk in chunks:
        yield chunk and chunk[:cut]
        cut -= len(chunk or "")
        if cut <= 0:
            return


def _behind(chunks: Iterable[str | None], cut: int) -> Iterator[str | None]:
    for chunk in chunks:
        yield chunk and chunk[cut:]
        cut = max(0, cut - len(chunk or ""))
