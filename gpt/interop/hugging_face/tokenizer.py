"""Our tokenizers as Hugging Face's files, and such files as tokenizers of ours.

`tokenizer.json` (`tokenizer_json.py`) is all that Hugging Face's `tokenizers` runs, `tokenizer_config.json` what
`transformers` adds to it: with both in a folder `AutoTokenizer.from_pretrained` gives the ids that ours gives.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpt.data.encoding import PATTERNS, for_library, from_printable
from gpt.data.tokenizer import Tokenizer, Unknown
from gpt.data.tokenizer.bpe import BPE
from gpt.data.tokenizer.byte import Byte
from gpt.data.tokenizer.char import REPLACEMENT, Char
from gpt.data.tokenizer.hugging_face import END, SETTINGS, TOKENIZER, HuggingFace, read
from gpt.files import read_json
from gpt.interop.hugging_face.tokenizer_json import described

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
