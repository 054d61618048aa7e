"""Bytes: id i is byte i, and end-of-text is 256. Nothing is learned, and no text is unknown."""

from typing import Any, ClassVar, Literal

import numpy as np

from gpt.data.tokenizer import Documents, Tokenizer, TokenizerConfig, Unknown, utf8


class ByteConfig(TokenizerConfig):
    """The 256 bytes and end-of-text."""

    name: Literal["byte"] = "byte"

    def build(self, documents: Documents) -> "Byte":
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

    def encode_piece(self, text: str, unknown: Unknown | None = None) -> np.ndarray:
        """The bytes, uint8.

        >>> Byte().encode_piece("aé").tolist()
        [97, 195, 169]
        """
        return np.frombuffer(utf8(text), np.uint8)

    def saved(self) -> dict[str, Any]:
        """Nothing but the name."""
        return {}
