"""The encodings that tiktoken publishes, GPT-2's among them: made by others, so nothing is learned."""

from concurrent.futures import Future
from threading import Thread
from typing import Any, ClassVar, Literal

import tiktoken
from pydantic import field_validator

from gpt.config import UserError, nearest
from gpt.data.encoding import Encoding, saved_pattern, saved_tokens, to_printable
from gpt.data.tokenizer import Documents, TokenizerConfig

PATTERN_OF = {
    **dict.fromkeys(("gpt2", "r50k_base", "p50k_base", "p50k_edit"), "gpt2"),
    "cl100k_base": "cl100k",
    **dict.fromkeys(("o200k_base", "o200k_harmony"), "o200k"),
}
"""The name in `PATTERNS` of how each splits text."""

PATIENCE = 45.0
"""Seconds that fetching 1 to 4 MB may take. tiktoken itself would wait for minutes behind a firewall."""


class NamedConfig(TokenizerConfig):
    """An encoding that tiktoken publishes, fetched when it is first used; its files are kept in TIKTOKEN_CACHE_DIR."""

    name: Literal["named"] = "named"
    encoding: str = "gpt2"
    """Its name: gpt2, cl100k_base (GPT-4), o200k_base (GPT-4o) or another one of tiktoken's."""

    @field_validator("encoding")
    @classmethod
    def _is_published(cls, value: str) -> str:
        names = tiktoken.list_encoding_names()
        if value not in names:
            raise ValueError(f"there is no {value!r:.80}; {nearest(value, names)}there are {', '.join(sorted(names))}")
        return value

    def build(self, documents: Documents) -> "Named":
        """The tokenizer, from tiktoken's cache or the network.

        Raises:
            UserError: it can be had from neither, or splits text as none of `PATTERNS` does.
        """
        published = fetch(self.encoding)
        pattern = PATTERN_OF.get(self.encoding)
        if pattern is None or "<|endoftext|>" not in published.special_tokens_set:
            raise UserError(
                f"tokenizer.encoding: {self.encoding} splits text, or ends it, as no encoding known here; "
                "take gpt2, cl100k_base or o200k_base"
            )
        return Named(self.encoding, tokens_by_id(published), pattern, published.eot_token)

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "Named":
        """The tokenizer as it was published."""
        if saved.keys() != {"encoding", "pattern", "end_of_text", "tokens"}:
            raise ValueError("the keys encoding, pattern, end_of_text and tokens are expected, and no others")
        encoding, end_of_text = saved["encoding"], saved["end_of_text"]
        if not isinstance(encoding, str) or not encoding.isidentifier():
            raise ValueError(f"{encoding!r:.40} is no name of an encoding")
        if type(end_of_text) is not int:
            raise ValueError(f"end_of_text must be an id, not {end_of_text!r:.40}")
        return Named(encoding, saved_tokens(saved), saved_pattern(saved), end_of_text)


def fetch(encoding: str) -> tiktoken.Encoding:
    """An encoding from tiktoken's cache or the network.

    Raises:
        UserError: it can be had from neither.
    """
    future: Future[tiktoken.Encoding] = Future()

    def work() -> None:
        try:
            future.set_result(tiktoken.get_encoding(encoding))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a connection that is never answered does not keep the program from ending.
    Thread(target=work, daemon=True).start()
    try:
        return future.result(PATIENCE)
    except (OSError, ValueError) as error:  # no network, no place to write; not what was published
        raise UserError(
            f"tokenizer.encoding: {encoding} could not be fetched from openaipublic.blob.core.windows.net "
            f"({reason(error)}); set TIKTOKEN_CACHE_DIR to a folder in which tiktoken has kept it, "
            "or take tokenizer=bpe, which needs no network"
        ) from None


def reason(error: Exception) -> str:
    """A few words: the operating system's own, or the kind of error."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return type(error).__name__


def tokens_by_id(encoding: tiktoken.Encoding) -> list[bytes]:
    """The bytes of each id; none for special tokens, whose text is text like any other, and for ids not given away."""
    tokens = [b""] * encoding.n_vocab
    for token, i in encoding._mergeable_ranks.items():
        tokens[i] = token
    return tokens


class Named(Encoding):
    """What was published under a name.

    Args:
        encoding: the name.
        tokens: as `Encoding`.
        pattern: as `Encoding`.
        end_of_text: as `Encoding`.
    """

    name: ClassVar[str] = "named"

    def __init__(self, encoding: str, tokens: list[bytes], pattern: str, end_of_text: int) -> None:
        super().__init__(tokens, pattern, end_of_text)
        self.encoding = encoding

    def saved(self) -> dict[str, Any]:
        """All of it, so that it opens without tiktoken's cache; tokens in GPT-2's printable form (Ġ is a space)."""
        return {
            "encoding": self.encoding,
            "pattern": self.pattern_name,
            "end_of_text": self.end_of_text,
            "tokens": [to_printable(token) for token in self.tokens],
        }
