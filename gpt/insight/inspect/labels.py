"""How tokens are named: what they stand for in their text, with signs for what is not seen, and parts of characters."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from gpt.data.tokenizer import Tokenizer
from gpt.insight.data.characters import visible
from gpt.insight.data.excerpt import label

END_OF_TEXT = "<end of text>"

LEGEND = "· space  ↵ line feed  ← carriage return  ⇥ tab  私 1/3 the first of 私's three bytes  <E7> a byte"
"""What the signs mean."""


def token_labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """A label for each token of a text.

    A token that holds a part of a character's bytes is labelled by the character and the part: `私 1/3`, `私 2-3/3`.

    Args:
        tokenizer: whose ids they are.
        ids: the whole text, or what is around the part is not known and its bytes are written in hex.
    """
    tokens = [tokenizer.decode_bytes([i]) for i in ids]
    characters = _Characters(b"".join(tokens))
    borders = pairwise(accumulate(map(len, tokens), initial=0))
    return [characters.label(*border) or END_OF_TEXT for border in borders]


def next_label(tokenizer: Tokenizer, token: int) -> str:
    """A label for a token after a text, where no character has begun."""
    return label(tokenizer.decode_bytes([token])) or END_OF_TEXT


class _Characters:
    """The characters of a text, by their bytes."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        characters = text.decode("utf-8", "surrogateescape")
        self.sizes = [_size(character) for character in characters]
        self.of_byte = [i for i, size in enumerate(self.sizes) for _ in range(size)]
        """The character that each byte belongs to."""
        self.starts = list(accumulate(self.sizes, initial=0))
        self.characters = characters

    def label(self, start: int, end: int) -> str:
        """What the bytes from `start` to `end` are; empty where there are none."""
        parts = list(self._parts(start, end))
        cut = any(" " in part for part in parts)
        return (" " if cut else "").join(parts)

    def _parts(self, start: int, end: int) -> Iterator[str]:
        for i in dict.fromkeys(self.of_byte[start:end]):
            character, size, begin = self.characters[i], self.sizes[i], self.starts[i]
            first, last = max(start, begin) - begin + 1, min(end, begin + size) - begin
            if "\udc80" <= character <= "\udcff":
                yield label(self.text[begin : begin + 1])
            elif last - first + 1 == size:
                yield visible(character)
            else:
                yield (
                    f"{visible(character)} {first}/{size}"
                    if first == last
                    else f"{visible(character)} {first}-{last}/{size}"
                )


def _size(character: str) -> int:
    return len(character.encode("utf-8", "surrogateescape"))
