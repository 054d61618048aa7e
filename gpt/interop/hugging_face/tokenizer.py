"""Our tokenizers as Hugging Face's files, and such files as tokenizers of ours.

`tokenizer.json` is all that Hugging Face's `tokenizers` runs, `tokenizer_config.json` what `transformers` adds to it:
with both in a folder `AutoTokenizer.from_pretrained` gives the ids that ours gives.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpt.config import UserError
from gpt.data.byte_level import is_special
from gpt.data.encoding import PATTERNS, Encoding, for_library, from_printable, to_printable
from gpt.data.tokenizer import Tokenizer, Unknown
from gpt.data.tokenizer.bpe import BPE
from gpt.data.tokenizer.byte import Byte
from gpt.data.tokenizer.char import REPLACEMENT, Char
from gpt.data.tokenizer.hugging_face import END, SETTINGS, TOKENIZER, HuggingFace, read
from gpt.files import read_json

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
"""Bytes as GPT-2's printable characters, and back."""

UNKNOWN = {
    "error": "A character that the training text had not is an error.",
    "skip": "A character that the training text had not is left out.",
    "replace": "A character that the training text had not becomes U+FFFD, which has an id.",
}
"""What becomes of one in the files that are written, as here."""


def write_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> list[str]:
    """Write the tokenizer for `AutoTokenizer`, which gives the same ids and text.

    Args:
        tokenizer: of any variant.
        folder: an existing one.
        context: the longest text that the model takes, in tokens.

    Returns:
        What its users must know, in sentences.
    """
    end = name_of_end(tokenizer)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "clean_up_tokenization_spaces": False,
        **({} if end is None else {"bos_token": end, "eos_token": end}),
    }
    for name, content in ((TOKENIZER, described(tokenizer)), (SETTINGS, settings)):
        text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        (folder / name).write_bytes(text.encode("utf-8"))
    return remarks(tokenizer)


def name_of_end(tokenizer: Tokenizer) -> str | None:
    """The text of the token that is end-of-text there; here it has none but what a file gave it."""
    return tokenizer.end if isinstance(tokenizer, HuggingFace) else END if tokenizer.end_of_text is not None else None


def remarks(tokenizer: Tokenizer) -> list[str]:
    """Where the files' reader must take care."""
    end = name_of_end(tokenizer)
    told = (
        "There is no end-of-text token: a text ends by its length."
        if end is None
        else f"{end} in a text is read as the token of that name, id {tokenizer.end_of_text}; in training it was plain "
        "text. Decode with skip_special_tokens=True."
    )
    more = UNKNOWN[tokenizer.unknown] if isinstance(tokenizer, Char) else None
    if isinstance(tokenizer, HuggingFace):
        more = "Other special tokens likewise. No token is put before or after a text, and it is not normalized."
    return [told, more] if more else [told]


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


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in a folder: the very one that `write_tokenizer` wrote there, else what its files describe.

    Raises:
        UserError: there is no tokenizer.json, or none that can be run without loss.
    """
    file = folder / TOKENIZER
    content = read_json(file.resolve()) if file.is_file() else {}
    try:
        found = next((ours for ours in candidates(content) if described(ours) == content), None)
    except (ValueError, LookupError, TypeError, AttributeError):  # somebody else's
        found = None
    return found or read(folder, "run")


def candidates(content: dict[str, Any]) -> Iterator[Tokenizer]:
    """The tokenizers of which a tokenizer.json may have been written.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: of none.
    """
    yield Byte()
    model, ids = content["model"], content["model"]["vocab"]
    tokens = [token for token in sorted(ids, key=ids.__getitem__) if token != END]
    splits = content["pre_tokenizer"].get("pretokenizers") if content["pre_tokenizer"] else None
    if splits:
        words = splits[0]["pattern"]["Regex"]
        for name, pattern in PATTERNS.items():
            if for_library(pattern) == words and ids.get(END) == len(tokens):
                yield BPE([*map(from_printable, tokens), b""], name)
    else:
        unknown: dict[Any, Unknown] = {REPLACEMENT: "replace", None: "skip"}
        yield Char("".join(tokens), END in ids, unknown.get(model["unk_token"], "error"))
