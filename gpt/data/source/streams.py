"""Documents as one stream of chunks, in which None stands between documents, and back.

In a stream a document may be cut, split or passed over a chunk at a time, however long it is.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from gpt.data.dataset import Document


def count_characters(documents: Iterable[Document]) -> int:
    """All characters of all documents."""
    return sum(len(chunk) for document in documents for chunk in document)


def marked(documents: Iterable[Document]) -> Iterator[str | None]:
    """The chunks of documents in one stream, with None after each document."""
    for document in documents:
        yield from document
        yield None


def separated(chunks: Iterable[str], separator: str) -> Iterator[str | None]:
    """The text between separators, with None for each of them, wherever a chunk ends.

    >>> list(separated(["one<", "|>two"], "<|>"))
    ['on', 'e', None, 't', 'wo']
    """
    rest = ""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(separator)
        for text in whole:
            yield text
            yield None
        # A separator may begin in the last characters, one less than it has, and end in the next chunk.
        sure = max(0, len(rest) - len(separator) + 1)
        yield rest[:sure]
        rest = rest[sure:]
    yield rest


def grouped(chunks: Iterator[str | None]) -> Iterator[Document]:
    """The documents of a stream of chunks in which None stands between documents; one without text is none.

    What has not been read of a document when the next one is asked for is passed over.
    """
    for first in chunks:
        if first:
            document = chain([first], iter(chunks.__next__, None))  # which ends at None
            yield document
            drain(document)


def drain(document: Document) -> None:
    """Read a document to its end, and keep nothing of it."""
    deque(document, maxlen=0)
