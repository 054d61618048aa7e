"""Signs that a text was read, converted or joined wrongly, and marks that stand in it as plain text."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

AROUND = 20
"""Characters that an example shows on each side."""


@dataclass(frozen=True)
class Place:
    """Where something stands first."""

    document: int
    """Counted from 1, within the split."""
    text: str
    """What stands there, with a little of what is around it."""


@dataclass(frozen=True)
class Kind:
    """A kind of trouble, and the way out of it."""

    what: str
    """In words, many of them."""
    remedy: str
    """What they mean and what to do, as a sentence without its capital and full stop."""
    worth: int = 1
    """Fewer may be meant, and are not told."""


REPLACED = Kind(
    "replacement characters (U+FFFD)",
    "bytes could not be read, by dataset.errors=replace here or when the text was made, and are lost; give the text's "
    "own dataset.encoding, or make it again from its source",
)
NUL = Kind("NUL characters", "text with NULs is often UTF-16, or no text at all, read as something else; convert it")
CONTROL = Kind("control characters", "they are rarely meant, and the model would write them too; remove them")
MARK = Kind("byte order marks (U+FEFF) within the text", "files were joined as they are; remove the marks")
PRIVATE = Kind(
    "private-use or unassigned characters",
    "only a font of their own or a newer Unicode knows them; replace them, unless you know what they are",
)
MISREAD = Kind(
    "signs of UTF-8 that was read as Latin-1",
    "take dataset.encoding=utf-8 if it was set otherwise; else the text itself must be mended, in Python by "
    "text.encode('cp1252').decode('utf-8')",
    worth=3,
)
ENTITIES = Kind(
    "HTML entities", "the text comes from web pages; html.unescape in Python turns them into characters", worth=10
)
MARKS = Kind(
    "marks such as <|endoftext|>",
    "they are plain text to the tokenizer; where they end documents, give the mark as dataset.separator "
    "(dataset=text), else remove them",
)
LONE_CR = Kind(
    "carriage returns with no line feed after them",
    "no line ends there for most programs; make them line feeds, with dataset.newline=lf (dataset=text)",
)
MIXED_ENDS = Kind(
    "line ends \\r\\n among others that are \\n alone",
    "the model would learn to mix them; make all of them \\n, with dataset.newline=lf (dataset=text)",
)

PATTERNS = {
    # C2 and C3, E2 80 and E3 81 to 83 begin most of what is not ASCII in the languages of Europe, in typography and
    # in Japanese; what must follow them never does in text that was read right.
    MISREAD: ("ÂÃâã", re.compile(r"[ÂÃ][\x80-\xbf€‚ƒ„…†‡ˆ‰‹‘’“”•–—˜™›]|â[\x80€]|ã[\x81-\x83‚ƒ]")),
    ENTITIES: ("&", re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")),
    MARKS: ("|", re.compile(r"<\|\w{2,24}\|>")),
}
"""For each kind, characters one of which it needs, and what it looks like."""


SIGNS = {0x0000: NUL, 0xFFFD: REPLACED, 0xFEFF: MARK, 0x09: None, 0x0A: None, 0x0D: None}
"""Characters that are a sign of something, or of nothing, whatever their category is."""

CATEGORIES = {"Cc": CONTROL, "Co": PRIVATE, "Cn": PRIVATE, "Cs": PRIVATE}


@cache
def kind_of(code: int) -> Kind | None:
    """What a character is a sign of, wherever it stands."""
    return SIGNS[code] if code in SIGNS else CATEGORIES.get(unicodedata.category(chr(code)))


def sightings(text: str, counts: np.ndarray) -> Iterator[tuple[Kind, int, int]]:
    """The signs of trouble in a text whose characters have been counted: kind, how many, where the first begins."""
    for code in np.flatnonzero(counts).tolist():
        if kind := kind_of(code):
            yield kind, int(counts[code]), text.index(chr(code))
    for kind, (needed, pattern) in PATTERNS.items():
        if any(ord(character) < len(counts) and counts[ord(character)] for character in needed):
            starts = [match.start() for match in pattern.finditer(text)]
            if starts:
                yield kind, len(starts), starts[0]
