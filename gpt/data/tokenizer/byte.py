"""Bytes: id i is byte i, and end-of-text is 256. Nothing is learned, and no text is unknown."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

from gpt.data.tokenizer import Tokenizer, TokenizerConfig, utf8


class ByteConfig(TokenizerConfig):
    """The 256 bytes and end-of-text."""

    name: Literal["byte"] = "byte"

    def build(self, documents: Callable[[], Iterator[str]]) -> "Byte":
        """The tokenizer."""
        return Byte()

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "Byte":
        """The tokenizer; there is nothing to restore."""
        if saved:
            raise ValueError(f"unknown key {next(iter(saved))!r:.40}")
        return Byte()


class Byte(Tokenizer):
    """A token for each byte of the text's UTF-8."""

    name: ClassVar[str] = "byte"

    def __init__(self) -> None:
        super().__init__([bytes([i]) for i in range(256)] + [b""], end_of_text=256)

    def encode(self, text: str) -> list[int]:
        """The bytes.

        >>> Byte().encode("aé")
        [97, 195, 169]
        """
        return list(utf8(text))

    def saved(self) -> dict[str, Any]:
        """Nothing but the name."""
        return {}
