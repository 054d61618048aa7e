"""Characters: an id for each one that the text has. The shortest way to a small model, as in Karpathy's char-rnn."""

import unicodedata
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from gpt.config import UserError
from gpt.data.dataset import SPLITS
from gpt.data.pieces import pieces
from gpt.data.tokenizer import Documents, Tokenizer, TokenizerConfig, Unknown, encoded

REPLACEMENT = "\ufffd"


class CharConfig(TokenizerConfig):
    """The characters that the text has, sorted; end-of-text, the last id, only where a split has several documents."""

    name: Literal["char"] = "char"
    unknown: Unknown = "error"
    """What becomes of a character that the text has not, in a prompt say: error refuses it, skip leaves it out,
    replace puts U+FFFD in its place, which gets an id."""

    def build(self, documents: Documents) -> "Char":
        """The tokenizer of the documents of both splits."""
        seen = np.zeros(0x110000, dtype=bool)
        several = False
        # Of both: a validation text's character without an id would be left out of its bits per byte, and the loss
        # would no longer compare with that of other tokenizers. Which characters there are is all that is learned.
        for split in SPLITS:
            for number, document in enumerate(documents(split)):
                several |= number > 0
                for piece in pieces(document, pattern=None):
                    seen[code_points(piece)] = True
        if not seen.any():
            raise UserError("tokenizer=char: the text is empty, so there is no character to learn")
        seen[ord(REPLACEMENT)] |= self.unknown == "replace"
        return Char("".join(map(chr, np.flatnonzero(seen).tolist())), several, self.unknown)

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "Char":
        """The tokenizer of these characters."""
        if saved.keys() != {"characters", "end_of_text", "unknown"}:
            raise ValueError("the keys characters, end_of_text and unknown are expected, and no others")
        characters, end_of_text = saved["characters"], saved["end_of_text"]
        if not isinstance(characters, str):
            raise ValueError("characters must be a string")
        if not isinstance(end_of_text, bool):
            raise ValueError(f"end_of_text must be true or false, not {end_of_text!r:.40}")
        unknown = next((choice for choice in get_args(Unknown) if choice == saved["unknown"]), None)
        if unknown is None:
            raise ValueError(f"unknown must be one of {', '.join(get_args(Unknown))}, not {saved['unknown']!r:.40}")
        return Char(characters, end_of_text, unknown)


class Char(Tokenizer):
    """A token for each of some characters.

    Args:
        characters: at least one, in the order of their code points, each once.
        end_of_text: whether there is an end-of-text, the last id.
        unknown: what becomes of another character.

    Raises:
        ValueError: the characters are not such.
    """

    name: ClassVar[str] = "char"

    def __init__(self, characters: str, end_of_text: bool, unknown: Unknown) -> None:
        surrogate = next((c for c in characters if "\ud800" <= c <= "\udfff"), None)
        if surrogate:
            raise ValueError(f"{surrogate!r} is no character")
        codes = code_points(characters)
        if not codes.size or (codes[1:] <= codes[:-1]).any():
            raise ValueError("there must be characters, in the order of their code points, each once")
        if unknown == "replace" and REPLACEMENT not in characters:
            raise ValueError("unknown is replace, and U+FFFD is not among the characters")
        super().__init__([*(c.encode() for c in characters), *[b""] * end_of_text], codes.size if end_of_text else None)
        self.characters = characters
        self.unknown = unknown
        # Code point -> id; one place more than the largest code point, which stands for all above it.
        self._ids = np.full(int(codes[-1]) + 2, UNKNOWN, dtype=np.uint32)
        self._ids[codes] = np.arange(codes.size)

    def encode_piece(self, text: str, unknown: Unknown | None = None) -> np.ndarray:
        """The ids, uint32."""
        codes = code_points(text)
        ids = self._ids[np.minimum(codes, self._ids.size - 1)]
        strange = ids == UNKNOWN
        if not strange.any():
            return ids
        match unknown or self.unknown:
            case "skip":
                return ids[~strange]
            case "replace" if REPLACEMENT in self.characters:
                ids[strange] = self._ids[ord(REPLACEMENT)]
                return ids
        position = int(strange.argmax())
        raise UserError(f"text: {described(text[position])} at character {position} is {self._way_out()}")

    def _way_out(self) -> str:
        """What is wrong with an unknown character, and what to do."""
        replace = (
            "unknown=replace puts U+FFFD in its place"
            if REPLACEMENT in self.characters
            else "unknown=replace needs U+FFFD among them, which training with tokenizer.unknown=replace puts there"
        )
        return f"none of the {len(self.characters)} that this tokenizer knows; unknown=skip leaves it out, {replace}"

    def saved(self) -> dict[str, Any]:
        """The characters as one string, whether there is an end-of-text, and what becomes of other characters."""
        return {
            "characters": self.characters,
            "end_of_text": self.end_of_text is not None,
            "unknown": self.unknown,
        }


UNKNOWN = np.uint32(0xFFFFFFFF)
"""In place of the id of a character that has none."""


def code_points(text: str) -> np.ndarray:
    """The text's code points, uint32.

    Raises:
        UserError: as `encoded`.
    """
    return np.frombuffer(encoded(text, "utf-32-le"), dtype="<u4")


def described(character: str) -> str:
    r"""A character, its code point and its name.

    >>> described("é"), described("\a")
    ("'é' (U+00E9 LATIN SMALL LETTER E WITH ACUTE)", "'\\x07' (U+0007)")
    """
    name = unicodedata.name(character, "")
    return f"{character!r} (U+{ord(character):04X}{' ' if name else ''}{name})"
