"""A split's tokens on disk: written by all cores in the documents' order, read through a memory map.

The ids of the documents one after the other, each document followed by end-of-text where the tokenizer has one;
little-endian uint16, or uint32 for a vocabulary above 65,536.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from pydantic import NonNegativeInt

from gpt.config import Config, UserError
from gpt.data.dataset import Document
from gpt.data.pieces import SIZE, STRETCH, pieces
from gpt.data.progress import Advance
from gpt.data.tokenizer import Tokenizer

CORES = os.cpu_count() or 1

LARGEST_GROUP = (1 + STRETCH) * SIZE
"""Characters that a thread encodes at once, at most."""

T = TypeVar("T")
R = TypeVar("R")


class Counts(Config):
    """How much there is of a split."""

    tokens: NonNegativeInt
    """Ids in the file, end-of-text included."""
    documents: NonNegativeInt
    """Documents."""
    text_bytes: NonNegativeInt
    """UTF-8 bytes of text that the ids stand for, to which end-of-text adds none."""


@dataclass(frozen=True)
class TokenFile:
    """A split's tokens on disk."""

    path: Path
    counts: Counts
    vocab_size: int
    """Ids are below it."""

    def __len__(self) -> int:
        return self.counts.tokens

    @cached_property
    def tokens(self) -> np.ndarray:
        """The ids, shape (tokens,), uint16 or uint32: mapped into memory, read-only, opened at first use."""
        if not self.counts.tokens:  # an empty file cannot be mapped
            return np.empty(0, id_type(self.vocab_size))
        return np.memmap(self.path, id_type(self.vocab_size), mode="r", shape=(self.counts.tokens,))

    def first(self, tokens: int) -> "TokenFile":
        """The same file of which only so many tokens count, from the first on."""
        return replace(self, counts=self.counts.model_copy(update={"tokens": min(tokens, self.counts.tokens)}))

    def check_ids(self, largest: int) -> None:
        """Refuse an id outside the vocabulary, so that no device ever sees it.

        Raises:
            UserError: the largest of some ids of this file is one.
        """
        if largest >= self.vocab_size:
            raise UserError(
                f"{self.path}: token id {largest} is outside the vocabulary of {self.vocab_size}, so the file is "
                f"damaged; delete {self.path.parent} and its tokens are prepared anew"
            )

    def check_size(self) -> None:
        """Refuse a file that was cut or grew.

        Raises:
            UserError: the file is not there, or its size is not that of its tokens.
        """
        expected = self.counts.tokens * id_type(self.vocab_size).itemsize
        size = self.path.stat().st_size if self.path.exists() else None
        if size != expected:
            found = "is missing" if size is None else f"has {size:,} bytes instead of {expected:,}"
            raise UserError(f"{self.path} {found}; delete {self.path.parent} and its tokens are prepared anew")


def id_type(vocab_size: int) -> np.dtype:
    """The numbers that ids are stored as."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


def write(
    path: Path, documents: Iterable[Document], tokenizer: Tokenizer, limit: int | None, advance: Advance
) -> Counts:
    """Write the documents' ids to the file, in memory that does not grow with them, and count them.

    Args:
        path: the file.
        documents: read once, in order.
        tokenizer: encodes their pieces, in a thread for each core.
        limit: tokens to write at most; no more is read then. None: all.
        advance: is told of the bytes of text that are done.
    """
    counts = Counts(tokens=0, documents=0, text_bytes=0)
    lengths = tokenizer.byte_lengths()
    with path.open("wb") as file, ThreadPoolExecutor(CORES) as pool:
        for part in in_order(pool, partial(encode, tokenizer), groups(documents, tokenizer.pattern)):
            if limit is not None:
                part = part.cut(limit - counts.tokens)
            file.write(part.ids.tobytes())
            size = int(lengths[part.ids].sum())
            counts = Counts(
                tokens=counts.tokens + len(part.ids),
                documents=counts.documents + part.documents,
                text_bytes=counts.text_bytes + size,
            )
            advance(size, **({} if limit is None else {"total": counts.text_bytes * limit // max(1, counts.tokens)}))
            if counts.tokens == limit:
                break
    return counts


class Encoded(NamedTuple):
    """The ids of some documents' text."""

    ids: np.ndarray
    ends: np.ndarray
    """How many of the ids stand before each document's end, that end's own id included."""
    documents: int

    def cut(self, limit: int) -> "Encoded":
        """The first `limit` ids at most; what they hold of a last document counts as one."""
        if len(self.ids) < limit:
            return self
        whole = int(np.searchsorted(self.ends, limit, side="right"))
        broken = limit > (self.ends[whole - 1] if whole else 0)
        return Encoded(self.ids[:limit], self.ends[:whole], whole + int(broken))


def encode(tokenizer: Tokenizer, group: list[str | None]) -> Encoded:
    """The ids of pieces of text, in which None is a document's end."""
    end = np.array([] if tokenizer.end_of_text is None else [tokenizer.end_of_text], id_type(tokenizer.vocab_size))
    parts = [end if piece is None else tokenizer.encode_piece(piece) for piece in group]
    lengths = np.cumsum([len(part) for part in parts])
    ends = lengths[[piece is None for piece in group]]
    return Encoded(np.concatenate(parts).astype(end.dtype), ends, len(ends))


def groups(documents: Iterable[Document], pattern: str | None) -> Iterator[list[str | None]]:
    """The documents' pieces, and None at each document's end, in lists that are worth a thread's while."""
    group: list[str | None] = []
    size = 0
    for document in documents:
        for piece in chain(pieces(document, pattern), [None]):
            group.append(piece)
            size += len(piece or " ")
            if size >= SIZE:
                yield group
                group, size = [], 0
    if group:
        yield group


def in_order(pool: Executor, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`function` of each item, computed side by side, given in order; few items are taken ahead of need."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > 2 * CORES:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
