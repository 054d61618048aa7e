"""Text as tokens, so that one sees where a tokenizer cuts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rich.cells import cell_len
from rich.text import Text

from gpt.data.tokenizer import Tokenizer
from gpt.insight.data.characters import visible

SHADES = ("#202020 on #a8d8f0", "#202020 on #f2d58a")
"""Of neighbouring tokens. Letters have a colour too, for terminals dark and light; where there are only 16 colours, the
nearest to these backgrounds still differ."""


def label(token: bytes) -> str:
    r"""A token as it is shown: its characters, and what is no whole character as bytes in hex.

    >>> label(" the".encode()), label("日".encode()[:2]), label(b"a\xe6")
    ('·the', '<E6 97>', 'a<E6>')
    """
    text = token.decode("utf-8", "surrogateescape")
    parts = re.split("([\\udc80-\\udcff]+)", text)
    return "".join(_hex(part) if i % 2 else visible(part) for i, part in enumerate(parts))


def _hex(escaped: str) -> str:
    return f"<{escaped.encode('utf-8', 'surrogateescape').hex(' ').upper()}>"


def excerpt(tokenizer: Tokenizer, ids: Iterable[int], width: int, height: int, colour: bool) -> list[Text]:
    """A text's tokens, in lines: a line ends where the text's does, and between two tokens where it is full.

    Args:
        tokenizer: whose ids they are.
        ids: the text.
        width: columns of a line; a token that has more is a line of its own.
        height: lines, at most.
        colour: neighbouring tokens have different backgrounds; else a bar stands between them.
    """
    labels = [shown(tokenizer, i) + "↵" * (i == tokenizer.end_of_text) for i in ids]
    lines = islice(_lines(labels, width, between=0 if colour else 1), height)
    return [_coloured(line) if colour else Text("│").join(map(Text, line)) for line in lines]


def shown(tokenizer: Tokenizer, token: int) -> str:
    """An id's token, as it is shown."""
    return "<end of text>" if token == tokenizer.end_of_text else label(tokenizer.decode_bytes([token]))


def _lines(labels: Sequence[str], width: int, between: int) -> Iterator[list[str]]:
    """The labels in lines, with so many columns between two."""
    line: list[str] = []
    used = 0
    for text in labels:
        size = cell_len(text) + between
        if line and used + size > width:
            yield line
            line, used = [], 0
        line.append(text)
        used += size
        if "↵" in text:
            yield line
            line, used = [], 0
    if line:
        yield line


def _coloured(line: Sequence[str]) -> Text:
    return Text.assemble(*((text, SHADES[i % 2]) for i, text in enumerate(line)))
