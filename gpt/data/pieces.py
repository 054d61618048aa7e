"""Long texts in pieces, cut where every tokenizer splits anyway, so that the tokens are those of the whole.

tiktoken's split runs out of stack on a million spaces, and in versions up to 0.12 its merging takes time that
is quadratic in the longest word. Pieces bound both, and the memory for the ids of a long document.
"""

import re
from collections.abc import Iterator

SIZE = 4096
"""Characters of a piece, at least; twice as many at most."""

BOUNDARY = re.compile(r"(?<=[^\W_])(?=[\s!-&(-/:-@\[-`{-~、。「」…])")
"""Right after a letter or digit, before white space or a punctuation mark other than the apostrophe, which
may belong to the word before it. The patterns of GPT-2, cl100k and o200k, and ours, split there whatever
follows."""


def pieces(text: str) -> Iterator[str]:
    """The text in order, in pieces of `SIZE` to 2 `SIZE` characters (the last one: up to 2 `SIZE`).

    A limit, confessed: a run of `SIZE` characters with no boundary in it (a million equal letters, say) is
    cut in its middle. The text is the same then, the tokens around the cut need not be those of the whole.

    >>> [len(piece) for piece in pieces("word " * 2000)]
    [4099, 4100, 1801]
    >>> list(pieces(""))
    []
    """
    start = 0
    while start < len(text):
        found = BOUNDARY.search(text, start + SIZE, start + 2 * SIZE)
        end = found.start() if found else start + 2 * SIZE
        yield text[start:end]
        start = end
