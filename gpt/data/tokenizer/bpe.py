"""Byte-pair encoding (Sennrich et al. 2016) over bytes, as GPT-2 has it (Radford et al. 2019).

Text is split into words by a pattern; each word starts as its bytes; then the pair of neighbours that occurs
most often in all words becomes a new token, again and again. Learned with Hugging Face's `tokenizers`, kept
as the tokens in the order in which they were learned, and run by `tiktoken`, which needs no more than that
order: a token is learned from one pair only, so "merge the pair whose union was learned first" is the same
rule as "apply the first learned merge".
"""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field
from tokenizers import Regex, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Learner

from gpt.data.dataset import Document
from gpt.data.encoding import PATTERNS, Encoding, from_printable, saved_pattern, saved_tokens, to_printable
from gpt.data.pieces import pieces
from gpt.data.tokenizer import Documents, TokenizerConfig, utf8

PIECE = 1 << 10
"""Characters of a piece that is learned from, at least: learning takes time that is quadratic in the longest word, and
no token worth having is longer than such a piece."""


class BPEConfig(TokenizerConfig):
    """Byte-pair encoding learned from the training documents; <|endoftext|> is the last id."""

    name: Literal["bpe"] = "bpe"
    vocab_size: int = Field(default=4096, ge=257, le=1_000_000)
    """Number of tokens, end-of-text included: 256 bytes, what is learned, and that one. Smaller where the
    text is too short to learn so many from."""
    pattern: Literal["gpt2", "modern"] = "modern"
    """How text is split into words, across which no token reaches."""
    learn_from: int = Field(default=100_000_000, ge=1)
    """Bytes of training text to learn from, the first ones: they bound the memory and time that learning takes."""

    def build(self, documents: Documents) -> "BPE":
        """The tokenizer, learned from the documents."""
        pattern = PATTERNS[self.pattern]
        text = beginning(documents("train"), pattern, self.learn_from)
        return BPE([*learn(text, self.vocab_size - 1, pattern), b""], self.pattern)

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "BPE":
        """The tokenizer whose tokens these are."""
        if saved.keys() != {"pattern", "tokens"}:
            raise ValueError("the keys pattern and tokens are expected, and no others")
        return BPE([*saved_tokens(saved), b""], saved_pattern(saved))


def beginning(documents: Iterable[Document], pattern: str, limit: int) -> Iterator[str]:
    """The documents' text in short pieces, until they have `limit` bytes or more."""
    for document in documents:
        for piece in pieces(document, pattern, PIECE):
            yield piece
            limit -= len(utf8(piece))
            if limit <= 0:
                return


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


def learn(texts: Iterable[str], size: int, pattern: str) -> list[bytes]:
    """At most `size` tokens, the 256 bytes first, then in the order in which they were learned."""
    library = learner(pattern)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,  # a pair seen once teaches nothing about the next text
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
    )
    library.train_from_iterator(texts, trainer)
    vocabulary = library.get_vocab()
    return [from_printable(token) for token in sorted(vocabulary, key=vocabulary.__getitem__)]


class BPE(Encoding):
    """Tokens in the order in which they were learned, <|endoftext|> after them.

    Args:
        tokens: distinct, the 256 single bytes among them; the last one, and no other, is empty.
        pattern: a name in `PATTERNS`.

    Raises:
        ValueError: the tokens are not such.
    """

    name: ClassVar[str] = "bpe"

    def __init__(self, tokens: list[bytes], pattern: str) -> None:
        if tokens.index(b"") != len(tokens) - 1:
            raise ValueError("there is an empty token")
        super().__init__(tokens, pattern, end_of_text=len(tokens) - 1)

    def saved(self) -> dict[str, Any]:
        """The pattern's name, and the tokens in GPT-2's printable form (Ġ is a space)."""
        return {"pattern": self.pattern_name, "tokens": [to_printable(token) for token in self.tokens[:-1]]}
