"""Long texts in pieces, cut where the tokenizer splits anyway, so that the tokens are those of the whole.

A text comes in chunks that end anywhere, and may be far larger than memory. Pieces bound the memory for it and its ids,
and the length of a word: tiktoken's splitting runs out of stack on a million spaces.
"""

from collections.abc import Iterable, Iterator
from unicodedata import category

import regex

SIZE = 1 << 16
"""Characters of a piece, at least, but for the last one."""

STRETCH = 4
"""How many times longer a piece may be: a word that is longer still is cut in its middle."""

BOUNDARY = regex.compile(r"(?<=[\p{L}\p{N}])(?=[\s\p{P}\p{S}--'])", regex.V1)
"""Right after a letter or digit, before white space, a punctuation mark or a symbol, but for the apostrophe, which may
belong to the word before it. The patterns of GPT-2, cl100k and o200k, and ours, split there whatever follows."""


WHOLE = ""
"""In the place of a pattern: nothing is known of how the tokenizer splits, so a text is one piece, however long."""


def pieces(chunks: Iterable[str], pattern: str | None, size: int = SIZE) -> Iterator[str]:
    """The text in order, in pieces that do not depend on how it was cut into chunks.

    A limit, confessed: a word of more than `size` characters (a million equal letters, say) may be cut, and one of more
    than four times that is. The text is the same then; the tokens around the cut need not be those of the whole.

    Args:
        chunks: the text; a chunk may be empty.
        pattern: how the tokenizer splits text into words; None where it may be cut anywhere; `WHOLE`.
        size: characters of a piece, at least, but for the last one.

    >>> [len(piece) for piece in pieces(["word " * 10_000] * 4, "[a-z]+| ")]
    [65539, 65540, 65540, 3381]
    >>> list(pieces([""], None))
    []
    """
    rest, longest = "", STRETCH * size
    if pattern == WHOLE:
        yield from filter(None, ["".join(chunks)])
        return
    for chunk in chunks:
        rest += chunk
        start = 0
        while len(rest) - start >= longest:
            end = start + cut(rest[start : start + longest], pattern, size)
            yield rest[start:end]
            start = end
        rest = rest[start:]
    while rest:
        end = cut(rest, pattern, size) if len(rest) > size else len(rest)
        yield rest[:end]
        rest = rest[end:]


def cut(text: str, pattern: str | None, size: int) -> int:
    """Where to cut a text of more than `size` characters, of which a piece's most or all that there are are given."""
    if pattern is None:
        return size
    boundaries = (found.start() for found in BOUNDARY.finditer(text, size))
    if place := next((place for place in boundaries if assigned(text, place)), None):
        return place
    ends = (word.end() for word in regex.finditer(pattern, text) if not word.group().isspace())
    # What a run of white space is split into depends on what follows it. Another word ends where it does whatever comes
    # after the text: the longest piece shows as much as matters, unless words are longer than `size`.
    return next((end for end in ends if end >= size and assigned(text, end)), len(text))


def assigned(text: str, place: int) -> bool:
    """Whether the characters on both sides are ones that tiktoken knows.

    `regex` may be of a newer Unicode than tiktoken, to which a newer letter is a symbol; Python's own is older.
    """
    return all(category(character) != "Cn" for character in text[place - 1 : place + 1])
