"""Byte-pair encoding (Sennrich et al. 2016) over bytes, as GPT-2 has it (Radford et al. 2019).

Text is split into words by a pattern; each word starts as its bytes; then the pair of neighbours that occurs
most often in all words becomes a new token, again and again. Learned with Hugging Face's `tokenizers`, kept
as the tokens in the order in which they were learned, and run by `tiktoken`, which needs no more than that
order: a token is learned from one pair only, so "merge the pair whose union was learned first" is the same
rule as "apply the first learned merge".
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Literal

import tiktoken
from pydantic import Field
from tokenizers import Regex, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Learner

from gpt.data.pieces import pieces
from gpt.data.tokenizer import Tokenizer, TokenizerConfig, utf8

PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "modern": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{M}\p{N}]?[\p{L}\p{M}]+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""How text is split into words, by name. `gpt2`: contractions, letters, digits and the rest, each with a
space before it. `modern`, after cl100k (GPT-4) and Qwen: contractions in capitals too, at most three digits
to a word, a mark before a word ("(that", "\\tx") goes with it, line ends with what stands before them; and
combining marks count as letters, without which the words of Hindi, Thai or decomposed Korean fall apart."""


class BPEConfig(TokenizerConfig):
    """Byte-pair encoding learned from the training documents; <|endoftext|> is the last id."""

    name: Literal["bpe"] = "bpe"
    vocab_size: int = Field(default=2048, ge=257, le=1_000_000)
    """Number of tokens, end-of-text included: 256 bytes, what is learned, and that one. Smaller where the
    text is too short to learn so many from."""
    pattern: Literal["gpt2", "modern"] = "modern"
    """How text is split into words, across which no token reaches."""

    def build(self, documents: Callable[[], Iterator[str]]) -> "BPE":
        """The tokenizer, learned from the documents."""
        return BPE(learn(documents(), self.vocab_size - 1, PATTERNS[self.pattern]), self.pattern)

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "BPE":
        """The tokenizer whose tokens these are."""
        if saved.keys() != {"pattern", "tokens"}:
            raise ValueError("the keys pattern and tokens are expected, and no others")
        pattern, tokens = saved["pattern"], saved["tokens"]
        if not isinstance(pattern, str) or pattern not in PATTERNS:
            raise ValueError(f"unknown pattern {pattern!r:.40}")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise ValueError("tokens must be a list of strings")
        return BPE([from_printable(token) for token in tokens], pattern)


def learner(pattern: str) -> Learner:
    """The library's own tokenizer, with nothing learned yet."""
    learner = Learner(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return learner


def learn(documents: Iterable[str], size: int, pattern: str) -> list[bytes]:
    """At most `size` tokens, the 256 bytes first, then in the order in which they were learned."""
    library = learner(pattern)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,  # a pair seen once teaches nothing about the next text
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
    )
    library.train_from_iterator((piece for document in documents for piece in pieces(document)), trainer)
    vocabulary = library.get_vocab()
    return [from_printable(token) for token in sorted(vocabulary, key=vocabulary.__getitem__)]


class BPE(Tokenizer):
    """Tokens in the order in which they were learned, <|endoftext|> after them.

    Args:
        tokens: distinct, the 256 single bytes among them.
        pattern: a name in `PATTERNS`.

    Raises:
        ValueError: the tokens are not such.
    """

    name: ClassVar[str] = "bpe"

    def __init__(self, tokens: list[bytes], pattern: str) -> None:
        ranks = {token: rank for rank, token in enumerate(tokens)}
        if len(ranks) != len(tokens):
            raise ValueError("a token stands twice among the tokens")
        if b"" in ranks or not all(bytes([byte]) in ranks for byte in range(256)):
            raise ValueError("the 256 bytes must be among the tokens, and no empty one")
        super().__init__([*tokens, b""], end_of_text=len(tokens))
        self.pattern = pattern
        # tiktoken needs no entry for end-of-text: text is never encoded to it, and decoding is ours.
        self._encoding = tiktoken.Encoding(
            self.name, pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={}
        )

    def encode(self, text: str) -> list[int]:
        """The ids that merging in the order of learning gives."""
        utf8(text)  # tiktoken would silently put U+FFFD in the place of what is no character
        return [i for piece in pieces(text) for i in self._encoding.encode_ordinary(piece)]

    def saved(self) -> dict[str, Any]:
        """The pattern's name, and the tokens in GPT-2's printable form (Ġ is a space)."""
        return {"pattern": self.pattern, "tokens": [to_printable(token) for token in self.tokens[:-1]]}


def printable_bytes() -> dict[int, str]:
    """GPT-2's printable character for each byte: its own, or where that is blank, the next from U+0100 on."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    blank = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(blank)}


PRINTABLE = printable_bytes()
BYTES = {character: byte for byte, character in PRINTABLE.items()}


def to_printable(token: bytes) -> str:
    """A token as a printable string.

    >>> to_printable(b" the"), to_printable("é".encode())
    ('Ġthe', 'Ã©')
    """
    return "".join(PRINTABLE[byte] for byte in token)


def from_printable(token: str) -> bytes:
    """The token that `to_printable` wrote so.

    Raises:
        ValueError: a character that it never writes.
    """
    unknown = set(token) - BYTES.keys()
    if unknown:
        raise ValueError(f"{min(unknown)!r} stands for no byte")
    return bytes(BYTES[character] for character in token)
