"""The content of tokenizer.json for each of our tokenizers: what Hugging Face's `tokenizers` runs."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from gpt.config import UserError
from gpt.data.byte_level import is_special
from gpt.data.encoding import Encoding, for_library, to_printable
from gpt.data.tokenizer import Tokenizer
from gpt.data.tokenizer.byte import Byte
from gpt.data.tokenizer.char import REPLACEMENT, Char
from gpt.data.tokenizer.hugging_face import END, HuggingFace

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
"""Bytes as GPT-2's printable characters, and back."""


def described(tokenizer: Tokenizer) -> dict[str, Any]:
    """The content of tokenizer.json.

    Raises:
        UserError: the variant has no such form.
    """
    match tokenizer:
        case Encoding():
            return of_encoding(tokenizer)
        case Byte():
            vocabulary = {to_printable(token): i for i, token in enumerate(tokenizer.tokens[:256])}
            return whole(tokenizer, bpe(vocabulary), BYTE_LEVEL, BYTE_LEVEL)
        case Char():
            return of_characters(tokenizer)
        case HuggingFace():
            return of_file(tokenizer)
    raise UserError(f"tokenizer={tokenizer.name} has no form that Hugging Face's tokenizers reads")


def of_encoding(tokenizer: Encoding) -> dict[str, Any]:
    """Of tokens and a pattern: byte-level byte-pair encoding with the pairs that the tokens are merged from."""
    vocabulary = {to_printable(token): i for i, token in enumerate(tokenizer.tokens) if token}
    pairs = [[to_printable(left), to_printable(right)] for left, right in merges(tokenizer.tokens)]
    words = {"Regex": for_library(tokenizer.pattern or "")}
    split = {"type": "Split", "pattern": words, "behavior": "Isolated", "invert": False}
    # As tiktoken does, a word that is a token becomes it, even if no merges lead there.
    model = bpe(vocabulary, pairs, ignore_merges=True)
    return whole(tokenizer, model, {"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL]}, BYTE_LEVEL)


def of_characters(tokenizer: Char) -> dict[str, Any]:
    """Of single characters, in the kind of model that does with an unknown one what the tokenizer does."""
    vocabulary = {character: i for i, character in enumerate(tokenizer.characters)}
    if tokenizer.unknown == "skip":  # byte-pair encoding starts from the characters that it knows
        return whole(tokenizer, bpe(vocabulary), None, {"type": "Fuse"})
    # Where the word for unknown ones is not in the vocabulary, an unknown one is an error.
    unknown = REPLACEMENT if tokenizer.unknown == "replace" else ""
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": unknown}
    each = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
    return whole(tokenizer, model, each, {"type": "Fuse"})


def of_file(tokenizer: HuggingFace) -> dict[str, Any]:
    """Of what was read from such a file: the same, less what was left out in training."""
    content = tokenizer.content
    none = dict.fromkeys(("normalizer", "post_processor", "truncation", "padding"))
    added = [{**token, "special": is_special(token, tokenizer.end)} for token in content.get("added_tokens", [])]
    return {**content, **none, "added_tokens": added, "decoder": BYTE_LEVEL}


def whole(
    tokenizer: Tokenizer, model: dict[str, Any], pre_tokenizer: Mapping[str, Any] | None, decoder: Mapping[str, Any]
) -> dict[str, Any]:
    """tokenizer.json of its parts; nothing changes the text before, nothing adds tokens after."""
    end = tokenizer.end_of_text
    if end is not None:
        # In the vocabulary too: else the library gives it the id after the last, whatever the file says.
        model["vocab"] = dict(sorted({**model["vocab"], END: end}.items(), key=lambda entry: entry[1]))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [] if end is None else [{"id": end, "content": END, **flags}],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }


def bpe(vocabulary: dict[str, int], pairs: Iterable[list[str]] = (), ignore_merges: bool = False) -> dict[str, Any]:
    """The library's byte-pair encoding."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": ignore_merges,
        "vocab": vocabulary,
        "merges": list(pairs),
    }


def merges(tokens: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """The pair that each token is merged from, in the order of the ids.

    Merging the neighbours whose union has the lowest id reaches a token by one pair only, whatever surrounds it: the
    one that merging the token's own bytes ends with. A token that this does not reach has none.

    >>> merges([b"a", b"b", b"c", b"ab", b"", b"bc", b"abc", b"cab"])
    [(b'a', b'b'), (b'b', b'c'), (b'ab', b'c'), (b'c', b'ab')]
    """
    ranks = {token: rank for rank, token in enumerate(tokens) if token}
    found = (parts(token, ranks) for token in ranks if len(token) > 1)
    return [(pair[0], pair[1]) for pair in found if len(pair) == 2]


def parts(token: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """What a token's bytes are before the last merge: two parts, or more where no merge is left."""
    found = [bytes([byte]) for byte in token]
    none = 1 << 32  # above any id
    while len(found) > 2:
        unions = [ranks.get(left + right, none) for left, right in pairwise(found)]
        lowest = min(unions)
        if lowest == none:
            break
        i = unions.index(lowest)
        found[i : i + 2] = [found[i] + found[i + 1]]
    return found
