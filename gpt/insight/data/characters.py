"""Which characters a text has: counted by the block, as a histogram over all code points of Unicode."""

import unicodedata
from collections.abc import Iterator

import numpy as np

CODES = 0x110000
"""Code points there are."""

NAMES = {0x0000: "NUL", 0x0009: "TAB", 0x000A: "LINE FEED", 0x000D: "CARRIAGE RETURN", 0x007F: "DELETE"}
"""Unicode gives control characters no name of their own."""


def count(text: str) -> np.ndarray:
    """How often each code point stands in the text: int64, as long as its largest one needs.

    >>> count("aba")[[97, 98]].tolist()
    [2, 1]
    """
    if text.isascii():
        return np.bincount(np.frombuffer(text.encode(), np.uint8))
    return np.bincount(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32))


def utf8_bytes(counts: np.ndarray) -> int:
    """The bytes that characters, so often each, take in UTF-8.

    >>> utf8_bytes(count("aé日🙂"))
    10
    """
    return int(sum(counts[first:].sum() for first in (0, 0x80, 0x800, 0x10000)))


def rarest(counts: np.ndarray, most: int) -> list[tuple[int, int]]:
    """At most so many code points, the rarest first, with their counts; of equal ones the lower first."""
    there = np.flatnonzero(counts)
    order = np.argsort(counts[there], kind="stable")[:most]
    return [(int(code), int(counts[code])) for code in there[order]]


def unseen(counts: np.ndarray, judged: np.ndarray) -> list[int]:
    """The code points that stand in what is judged and not where `counts` comes from, the commonest first."""
    codes = np.flatnonzero((judged > 0) & (counts == 0))
    return codes[np.argsort(-judged[codes], kind="stable")].tolist()


def name(code: int) -> str:
    """A character's name in Unicode.

    >>> name(0xE9), name(0xE000)
    ('LATIN SMALL LETTER E WITH ACUTE', 'private use')
    """
    kinds = {"Cc": "control character", "Co": "private use", "Cs": "half of a surrogate pair", "Cn": "unassigned"}
    return unicodedata.name(chr(code), "") or NAMES.get(code) or kinds.get(unicodedata.category(chr(code)), "no name")


def visible(text: str) -> str:
    r"""The text on one line, each character seen: · is a space, ↵ ← ⇥ □ line feed, carriage return, tab, wide space.

    What takes no place of its own on a screen is written as its code point.

    >>> visible("a b\r\n") + visible("\x00\u200b")
    'a·b←↵<U+0000><U+200B>'
    """
    return "".join(_visible(text))


def _visible(text: str) -> Iterator[str]:
    marks = {" ": "·", "\n": "↵", "\r": "←", "\t": "⇥", "\u3000": "□"}
    for character in text:
        if character in marks:
            yield marks[character]
        elif character.isprintable():
            yield character
        else:
            yield f"<U+{ord(character):04X}>"
