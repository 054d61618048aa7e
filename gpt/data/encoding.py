"""A tokenizer that is kept as tokens and the name of a pattern, and run by `tiktoken`: what bpe and named share.

Text is split into words by the pattern; each word starts as its bytes; then, again and again, the two neighbours whose
union has the lowest id are merged.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tiktoken

from gpt.data.tokenizer import Tokenizer, Unknown, utf8

PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "modern": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{M}\p{N}]?[\p{L}\p{M}]+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""How text is split into words, by name. `gpt2`, `cl100k` (GPT-4) and `o200k` (GPT-4o) are what tiktoken publishes.
`gpt2`: contractions, letters, digits and the rest, each with a space before it. `modern`, after cl100k and Qwen:
contractions in capitals too, at most three digits to a word, a mark before a word ("(that", "\\tx") goes with it, line
ends with what stands before them; and combining marks count as letters, without which the words of Hindi, Thai or
decomposed Korean fall apart."""


class Encoding(Tokenizer):
    """Tokens by id, lower ids merged first.

    Args:
        tokens: distinct, the 256 single bytes among them; empty for end-of-text and for ids that stand for nothing.
        pattern: a name in `PATTERNS`.
        end_of_text: its id.

    Raises:
        ValueError: the tokens or the id are not such.
    """

    def __init__(self, tokens: Sequence[bytes], pattern: str, end_of_text: int) -> None:
        ranks = {token: rank for rank, token in enumerate(tokens) if token}
        if len(ranks) != len(tokens) - tokens.count(b""):
            raise ValueError("a token stands twice among the tokens")
        if not all(bytes([byte]) in ranks for byte in range(256)):
            raise ValueError("the 256 bytes must be among the tokens")
        if not 0 <= end_of_text < len(tokens) or tokens[end_of_text]:
            raise ValueError(f"end-of-text must be the id of an empty token, {end_of_text} is not")
        super().__init__(tokens, end_of_text)
        self.pattern_name = pattern
        self.pattern = PATTERNS[pattern]
        # Without special tokens tiktoken cannot take text for one, and decoding is ours.
        self._encoding = tiktoken.Encoding(self.name, pat_str=self.pattern, mergeable_ranks=ranks, special_tokens={})

    def encode_piece(self, text: str, unknown: Unknown | None = None) -> np.ndarray:
        """The ids, uint32; no text is unknown."""
        utf8(text)  # some versions of tiktoken put U+FFFD in the place of what is no character
        return self._encoding.encode_to_numpy(text, disallowed_special=())


def for_library(pattern: str) -> str:
    r"""A pattern as Hugging Face's `tokenizers` must be given it to split as tiktoken does.

    Its regular expressions are Oniguruma's: `{1,3}+` is no possessive `{1,3}` there, but that again and again. Nothing
    follows it, so the greedy one splits alike. `$` is the end of a line there, and of the text to tiktoken: after
    `\s++`, which leaves no line end, the same.

    >>> for_library(PATTERNS["cl100k"])[49:60]
    '\\p{N}{1,3}|'
    """
    return pattern.replace("{1,3}+", "{1,3}")


def saved_pattern(saved: dict[str, Any]) -> str:
    """The name under "pattern" in what was saved.

    Raises:
        ValueError: no pattern has that name.
    """
    pattern = saved["pattern"]
    if not isinstance(pattern, str) or pattern not in PATTERNS:
        raise ValueError(f"unknown pattern {pattern!r:.40}")
    return pattern


def saved_tokens(saved: dict[str, Any]) -> list[bytes]:
    """The tokens under "tokens" in what was saved.

    Raises:
        ValueError: they are no list of what `to_printable` writes.
    """
    tokens = saved["tokens"]
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ValueError("tokens must be a list of strings")
    return [from_printable(token) for token in tokens]


def printable_bytes() -> dict[int, str]:
    """GPT-2's printable character for each byte: its own, or where that is blank, the next from U+0100 on."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    blank = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(blank)}


PRINTABLE = printable_bytes()
_BYTES = dict.fromkeys(range(256), "\uffff") | {ord(shown): chr(byte) for byte, shown in PRINTABLE.items()}
"""For `str.translate`: to the Latin-1 character of the byte; what is never written, to one that Latin-1 has not."""


def to_printable(token: bytes) -> str:
    """A token as a printable string.

    >>> to_printable(b" the"), to_printable("é".encode())
    ('Ġthe', 'Ã©')
    """
    return token.decode("latin-1").translate(PRINTABLE)


def from_printable(token: str) -> bytes:
    """The token that `to_printable` wrote so.

    Raises:
        ValueError: a character that it never writes.
    """
    try:
        return token.translate(_BYTES).encode("latin-1")
    except UnicodeEncodeError as error:
        raise ValueError(f"{token[error.start]!r} stands for no byte") from None
