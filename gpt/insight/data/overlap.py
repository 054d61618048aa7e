"""Validation text that also stands in the training text: whole documents, and lines long enough to be no accident.

The validation side is kept as hashes of 64 bits; the training side passes by. Where there is more than memory is given
to, one hash in 2, 4, 8, ... is kept, chosen by its last bits, and what is found stands for as many.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

WORTH = 40
"""Characters of a line that is compared, at least, without the white space around it."""

KEPT = 1 << 19
"""Hashes that are kept of lines, and as many of documents; about 80 MB each."""

SHOWN = 200
"""Characters that are kept of the example."""


class Reader:
    """Takes a split's text as it passes; a subclass says what becomes of lines and documents."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._digest, self._size = hashlib.blake2b(digest_size=8), 0

    def read(self, chunk: str, lines: Iterable[str]) -> None:
        """The next chunk of a document, and the lines, without their ends, that end within it."""
        content = chunk.encode("utf-8", "surrogatepass")
        self._digest.update(content)
        self._size += len(content)
        for line in lines:
            if len(line) >= WORTH and len(text := line.strip()) >= WORTH:
                self.line(text)

    def end(self) -> None:
        """The document has ended."""
        if self._size:
            self.document(int.from_bytes(self._digest.digest(), "big"), self._size)
        self._begin()

    def line(self, text: str) -> None:
        """A line that is worth to be compared."""
        raise NotImplementedError

    def document(self, key: int, size: int) -> None:
        """A document that is not empty: a hash of its text, and its bytes."""
        raise NotImplementedError


class Sizes:
    """Bytes of text by hash, thinned out where there are too many."""

    def __init__(self) -> None:
        self.one_in = 1
        """A text in so many is here."""
        self._sizes: dict[int, int] = {}

    def add(self, key: int, size: int) -> None:
        """So much text more of this hash."""
        if key % self.one_in == 0:
            self._sizes[key] = self._sizes.get(key, 0) + size
        while len(self._sizes) > KEPT:
            self.one_in *= 2
            self._sizes = {key: size for key, size in self._sizes.items() if key % self.one_in == 0}

    def take(self, key: int) -> int:
        """The bytes of this hash, which are then no longer here; 0 where there are none."""
        return self._sizes.pop(key, 0)


class Held(Reader):
    """Reads the validation split, and remembers it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = Sizes()
        self.documents = Sizes()

    def line(self, text: str) -> None:
        """Remember it."""
        self.lines.add(hash(text), len(text.encode("utf-8", "surrogatepass")))

    def document(self, key: int, size: int) -> None:
        """Remember it."""
        self.documents.add(key, size)


@dataclass(frozen=True)
class Overlap:
    """What of the validation text also stands in the training text."""

    documents: int
    """Different documents."""
    document_bytes: int
    """Of validation that are theirs."""
    lines: int
    """Different lines of `WORTH` characters or more."""
    line_bytes: int
    """Of validation that are theirs."""
    example: str
    """The longest such line, cut where it is long; '' where there is none."""
    one_in: int
    """Numbers come from one line or document in so many; 1: they are exact."""


class Search(Reader):
    """Reads the training split, and looks for what is held of the validation split.

    Args:
        held: of which everything that is found is taken.
    """

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held
        self._documents, self._document_bytes = 0, 0
        self._lines, self._line_bytes = 0, 0
        self._example = ""

    def line(self, text: str) -> None:
        """Look for it."""
        if size := self.held.lines.take(hash(text)):
            self._lines += 1
            self._line_bytes += size
            self._example = max(self._example, text[:SHOWN], key=len)

    def document(self, key: int, size: int) -> None:
        """Look for it."""
        if shared := self.held.documents.take(key):
            self._documents += 1
            self._document_bytes += shared

    @property
    def found(self) -> Overlap:
        """What was found so far."""
        lines, documents = self.held.lines.one_in, self.held.documents.one_in
        return Overlap(
            self._documents * documents,
            self._document_bytes * documents,
            self._lines * lines,
            self._line_bytes * lines,
            self._example,
            max(lines, documents),
        )
