"""A tokenizer that came with a model: the `tokenizer.json` of its folder, run by Hugging Face's `tokenizers`."""

import hashlib
import os
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import field_validator

from gpt.config import UserError
from gpt.data.byte_level import checked, library, pattern_of
from gpt.data.encoding import from_printable
from gpt.data.tokenizer import Documents, Tokenizer, TokenizerConfig, Unknown, utf8
from gpt.files import read_json

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
END = "<|endoftext|>"


class HuggingFaceConfig(TokenizerConfig):
    """The tokenizer of a model's folder, kept whole with the tokens and beside the weights."""

    name: Literal["hugging_face"] = "hugging_face"
    path: str
    """A folder that has a tokenizer.json, or that file: byte-level byte-pair encoding, as GPT-2, Llama 3 and Qwen have
    it. The end-of-text is the eos_token of the tokenizer_config.json beside it, else <|endoftext|>."""

    @field_validator("path")
    @classmethod
    def is_absolute(cls, path: str) -> str:
        """From now on it means the same from any folder."""
        if path == "":
            raise ValueError("expected a folder or a tokenizer.json, got nothing")
        return str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111 - ~nobody stays as it is

    def build(self, documents: Documents) -> "HuggingFace":
        """The tokenizer.

        Raises:
            UserError: there is none, or none that can be run without loss.
        """
        return read(Path(self.path), "tokenizer.path")

    def fingerprint(self) -> dict[str, Any]:
        """Hashes of the files; their name matters to nobody."""
        found = [path for path in files(Path(self.path)) if path.is_file()]
        return {"name": self.name, "files": [hashlib.sha256(path.read_bytes()).hexdigest() for path in found]}

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "HuggingFace":
        """The tokenizer whose files' content this is."""
        if saved.keys() != {"end_of_text", "tokenizer"}:
            raise ValueError("the keys end_of_text and tokenizer are expected, and no others")
        content, end = saved["tokenizer"], saved["end_of_text"]
        if not isinstance(content, dict):
            raise ValueError("tokenizer must be an object")
        if not isinstance(end, str | None):
            raise ValueError(f"end_of_text must be a token or null, not {end!r:.40}")
        return HuggingFace(content, end)


def files(path: Path) -> tuple[Path, Path]:
    """The two files that a path means: what `tokenizers` reads, and what `transformers` adds."""
    tokenizer = path / TOKENIZER if path.is_dir() else path
    return tokenizer, tokenizer.with_name(SETTINGS)


def read(path: Path, setting: str) -> "HuggingFace":
    """The tokenizer of a folder, or of a tokenizer.json.

    Args:
        path: the folder or file.
        setting: that named it.

    Raises:
        UserError: there is none, or none that can be run without loss.
    """
    file, settings = files(path)
    if not file.is_file():
        raise UserError(f"{setting}: there is no {file}; name a folder that has a {TOKENIZER}, or that file")
    content = read_json(file.resolve())  # where the Hub's cache keeps it, the folder has a link only
    try:
        return HuggingFace(content, end_of_text(content, read_json(settings.resolve()) if settings.is_file() else {}))
    except ValueError as error:
        raise UserError(f"{setting}: {file}: {error}; name another") from None


def end_of_text(content: dict[str, Any], settings: dict[str, Any]) -> str | None:
    """The token that ends a text: the one that the settings name, else <|endoftext|> where there is one.

    Raises:
        ValueError: as `checked`.
    """
    named = settings.get("eos_token")
    named = named.get("content") if isinstance(named, dict) else named
    if isinstance(named, str):
        return named
    return END if any(token.content == END for token in checked(content).added_tokens) else None


class HuggingFace(Tokenizer):
    """What a tokenizer.json describes; the text of its special tokens is text like any other.

    Args:
        content: of the file.
        end: the text of the added token that is end-of-text, if one is.

    Raises:
        ValueError: it cannot be run without loss.
    """

    name: ClassVar[str] = "hugging_face"

    def __init__(self, content: dict[str, Any], end: str | None) -> None:
        found = checked(content)
        self.content = content
        self.end = end
        self._library = library(content, end)
        added = self._library.get_added_tokens_decoder()
        special = {token.content: i for i, token in added.items() if token.special}
        if end is not None and end not in special:
            raise ValueError(f"end-of-text, {end!r:.40}, is none of its added tokens")
        text = {i: token.content.encode() for i, token in added.items() if not token.special}
        known = {i: in_bytes(token) for token, i in found.model.vocab.items()} | text
        known |= dict.fromkeys(special.values(), b"")
        super().__init__([known.get(i, b"") for i in range(max(known) + 1)], None if end is None else special[end])
        self.pattern = pattern_of(found)
        for name, i in special.items():
            if i in self.encode_piece(name):
                raise ValueError(f"its special token {name!r:.40} comes out of plain text too")

    def encode_piece(self, text: str, unknown: Unknown | None = None) -> np.ndarray:
        """The ids, uint32; no text is unknown."""
        utf8(text)
        (found,) = self._library.encode_batch_fast([text], add_special_tokens=False)  # the one that frees Python's lock
        return np.array(found.ids, np.uint32)

    def saved(self) -> dict[str, Any]:
        """The text of end-of-text, and all of tokenizer.json."""
        return {"end_of_text": self.end, "tokenizer": self.content}


def in_bytes(token: str) -> bytes:
    """What a token of the vocabulary stands for.

    As the library's decoder has it, one that is no byte-level token is the text that it is.
    """
    try:
        return from_printable(token)
    except ValueError:
        return token.encode()
