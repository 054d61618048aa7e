"""A split's text, looked at once from its first character to its last, in memory that does not grow with it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from gpt.data.dataset import Document
from gpt.insight.data.characters import CODES, count, utf8_bytes
from gpt.insight.data.lengths import Lengths
from gpt.insight.data.overlap import Reader
from gpt.insight.data.trouble import AROUND, Kind, Place, sightings

BLOCK = 1 << 20
"""Characters that are counted together."""

LONGEST_COMPARED = 1 << 16
"""Characters of a line that is handed to readers, at most; of a longer one only the length is known."""


@dataclass(frozen=True)
class SplitSurvey:
    """What was seen of a split."""

    counts: np.ndarray
    """How often each code point stands there: int64, (0x110000,)."""
    lengths: Lengths
    """The documents', in characters."""
    longest_line: int
    """Characters, its end not counted; a line ends with a line feed."""
    longest_line_document: int
    """The document that it stands in, counted from 1; 0 where there is no line."""
    crlf: int
    """Line feeds with a carriage return before them."""
    found: dict[Kind, tuple[int, Place]]
    """Signs of trouble: how often, and where first."""

    @cached_property
    def characters(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @cached_property
    def text_bytes(self) -> int:
        """Its size in UTF-8."""
        return utf8_bytes(self.counts)

    @property
    def lone_lf(self) -> int:
        """Line feeds with none."""
        return int(self.counts[ord("\n")]) - self.crlf

    @property
    def lone_cr(self) -> int:
        """Carriage returns with no line feed after them."""
        return int(self.counts[ord("\r")]) - self.crlf


def survey(documents: Iterable[Document], reader: Reader | None = None) -> SplitSurvey:
    """Look at a split's documents.

    A limit, confessed: a mark that stands across two blocks of a million characters is not seen.

    Args:
        documents: read once.
        reader: is shown all of the text.
    """
    blocks, lines, lengths = Blocks(), Lines(), Lengths()
    longest_document = 0
    for number, document in enumerate(documents, 1):
        length, longest = 0, lines.longest
        for chunk in bounded(document):
            length += len(chunk)
            blocks.add(number, chunk)
            finished = lines.add(chunk)
            if reader:
                reader.read(chunk, finished)
        last = lines.end()
        if reader:
            reader.read("", [last])
            reader.end()
        lengths.add(length)
        longest_document = number if lines.longest > longest else longest_document
    blocks.count()
    return SplitSurvey(blocks.counts, lengths, lines.longest, longest_document, blocks.crlf, blocks.found)


def bounded(document: Document) -> Iterator[str]:
    """A document's text in chunks that are neither empty nor longer than a block."""
    for chunk in document:
        for first in range(0, len(chunk), BLOCK):
            yield chunk[first : first + BLOCK]


def beginning(documents: Iterable[Document], size: int) -> Iterator[Document]:
    """The documents that begin within the first so many bytes of text, the last one cut where they end."""
    left = size

    def counted(document: Document) -> Iterator[str]:
        nonlocal left
        for chunk in document:
            content = chunk.encode("utf-8", "surrogatepass")
            yield chunk if len(content) <= left else content[:left].decode("utf-8", "ignore")
            left -= len(content)
            if left <= 0:
                return

    for document in documents:
        yield counted(document)
        if left <= 0:
            return


class Lines:
    """Cuts a document's chunks into lines; of a line that is too long to be compared it keeps only the length."""

    def __init__(self) -> None:
        self.longest = 0
        self._begun: list[str] = []
        self._length = 0

    def add(self, chunk: str) -> list[str]:
        """The lines that end within the chunk."""
        first, *others = chunk.split("\n")
        self._grow(first)
        if not others:
            return []
        *middle, last = others
        if "\r" in chunk:
            middle = [line.removesuffix("\r") for line in middle]
        finished = [self.end(), *middle]
        self.longest = max(self.longest, max(map(len, middle), default=0))
        self._grow(last)
        return finished

    def end(self) -> str:
        """The line that was begun: nothing follows."""
        line = "".join(self._begun).removesuffix("\r")
        self.longest = max(self.longest, len(line) if self._length <= LONGEST_COMPARED else self._length)
        self._begun, self._length = [], 0
        return line

    def _grow(self, part: str) -> None:
        self._length += len(part)
        self._begun = [*self._begun, part] if self._length <= LONGEST_COMPARED else []


class Blocks:
    """Gathers chunks and counts them by the block, which is much faster than one by one."""

    def __init__(self) -> None:
        self.counts = np.zeros(CODES, np.int64)
        self.crlf = 0
        self.found: dict[Kind, tuple[int, Place]] = {}
        self._waiting: list[tuple[int, str]] = []
        self._size = 0
        self._ended_with_cr = False

    def add(self, document: int, chunk: str) -> None:
        """A chunk of a document."""
        self._waiting.append((document, chunk))
        self._size += len(chunk)
        if self._size >= BLOCK:
            self.count()

    def count(self) -> None:
        """Count what has been gathered."""
        text = "".join(chunk for _, chunk in self._waiting)
        counts = count(text)
        self.crlf += text.count("\r\n") + (self._ended_with_cr and text.startswith("\n"))
        self._ended_with_cr = text.endswith("\r")
        for kind, many, start in sightings(text, counts):
            before, place = self.found.get(kind) or (0, self._place(text, start))
            self.found[kind] = before + many, place
        self.counts[: len(counts)] += counts
        self._waiting, self._size = [], 0

    def _place(self, text: str, start: int) -> Place:
        """Where in which document a character of the gathered text stands."""
        ends = accumulate(len(chunk) for _, chunk in self._waiting)
        document = next(number for (number, _), end in zip(self._waiting, ends, strict=True) if start < end)
        return Place(document, text[max(0, start - AROUND) : start + AROUND])
