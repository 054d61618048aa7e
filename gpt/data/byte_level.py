"""A `tokenizer.json` of Hugging Face's, as far as it can be run without loss: byte-level byte-pair encoding.

GPT-2, Llama 3, Qwen and most others have it. All of a text's bytes are tokens then, nothing is unknown, and what is
decoded is what was encoded. What would change the text before it is encoded (a normalizer, a space put before it) or
lose some of it is refused, but for NFC: that is left out, which changes no id of a text that is in NFC already, as
nearly all text is.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from tokenizers import Tokenizer as Library

from gpt.config import Config, UserError, parse, shown
from gpt.data.encoding import PATTERNS, PRINTABLE, for_library
from gpt.data.pieces import BOUNDARY, WHOLE

Id = Annotated[int, Field(ge=0, lt=1 << 22)]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
AFTER_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3, QWEN = AFTER_CL100K % r"\p{N}{1,3}", AFTER_CL100K % r"\p{N}"
KNOWN = frozenset({GPT2, LLAMA3, QWEN, *PATTERNS.values(), *map(for_library, PATTERNS.values())})
"""Patterns that split where `pieces` cuts: GPT-2's, Llama 3's, Qwen's, and those that are written here. They leave no
character out."""

WANTED = "only byte-level tokenizers, as GPT-2, Llama 3 and Qwen have, give every text back"


class Part(Config):
    """A part of the file: what matters of it is checked, other keys may stand beside it."""

    model_config = ConfigDict(extra="ignore")


class Added(Part):
    """A token that is looked for in the text before all else, or, a special one, that only programs put there."""

    content: str = Field(min_length=1)
    special: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


class Model(Part):
    """Byte-pair encoding, always the same for the same text, of nothing but the text."""

    type: Literal["BPE"] = "BPE"
    vocab: dict[str, Id]
    merges: list[Any]
    dropout: None = None
    byte_fallback: bool = False
    continuing_subword_prefix: Literal["", None] = None
    end_of_word_suffix: Literal["", None] = None


class Content(Part):
    """What of the file is looked at here; the library looks at the rest."""

    model: Model
    added_tokens: list[Added] = Field(default_factory=list)
    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None

    @property
    def text_tokens(self) -> list[Added]:
        """The added tokens that stand for text."""
        return [token for token in self.added_tokens if not token.special]


def checked(content: dict[str, Any]) -> Content:
    """What of a file is looked at.

    Raises:
        ValueError: it is no tokenizer that can be run without loss; says why.
    """
    try:
        found = parse(Content, content)
    except UserError as error:
        raise ValueError(str(error)) from None
    if found.model.byte_fallback:
        raise ValueError(f"it has bytes for unknown characters only, as SentencePiece's; {WANTED}")
    if wrong := set(kinds(found.normalizer, "normalizers")) - {"NFC"}:
        raise ValueError(f"its normalizer, {shown(min(wrong))}, changes the text, so that it would not come back")
    check_splitting(found.pre_tokenizer)
    if not found.model.vocab.keys() >= set(PRINTABLE.values()):
        raise ValueError("the 256 bytes must be among the tokens")
    if len(set(found.model.vocab.values())) != len(found.model.vocab):
        raise ValueError("two tokens have the same id")
    for token in found.text_tokens:
        if token.lstrip or token.rstrip:
            raise ValueError(f"its token {shown(token.content)} takes the space beside it, which would not come back")
    return found


def steps(part: dict[str, Any] | None, inner: str) -> list[dict[str, Any]]:
    """A part that may be a sequence of several, as these."""
    if part is None:
        return []
    found = part.get(inner) if part.get("type") == "Sequence" else [part]
    if not isinstance(found, list) or not all(isinstance(step, dict) for step in found):
        raise ValueError(f"{inner}: expected a list of objects")
    return found


def kinds(part: dict[str, Any] | None, inner: str) -> list[str]:
    """The types of a part's steps."""
    return [str(step.get("type")) for step in steps(part, inner)]


def check_splitting(pre_tokenizer: dict[str, Any] | None) -> None:
    """Refuse what loses or adds characters, or does not end with bytes as printable characters.

    Raises:
        ValueError: it does.
    """
    *splits, last = steps(pre_tokenizer, "pretokenizers") or [{}]
    if last.get("type") != "ByteLevel":
        raise ValueError(f"it splits text by {shown(last.get('type'))} in the end; {WANTED}")
    if last.get("add_prefix_space") is not False:
        raise ValueError("it puts a space before the text, which would not come back")
    for split in splits:
        whole = split.get("invert") is True and regex_of(split) in KNOWN  # what no word has is removed: nothing
        if split.get("type") not in ("Split", "Digits") or (split.get("behavior") == "Removed" and not whole):
            raise ValueError(f"it splits text by {shown(split.get('type'))}, which may leave some of it out")


def regex_of(split: dict[str, Any]) -> Any:
    """The regular expression of a step that has one."""
    pattern = split.get("pattern")
    return pattern.get("Regex") if isinstance(pattern, dict) else None


def pattern_of(content: Content) -> str:
    """How `pieces` may cut: by the words where they are those of a known pattern, else not at all."""
    *splits, last = steps(content.pre_tokenizer, "pretokenizers")
    if any(token.single_word or BOUNDARY.search(token.content) for token in content.text_tokens):
        return WHOLE
    if not splits and last.get("use_regex", True):
        return GPT2
    if len(splits) != 1 or last.get("use_regex", True):
        return WHOLE
    as_words = (splits[0].get("behavior"), splits[0].get("invert")) in (("Isolated", False), ("Removed", True))
    return next((known for known in KNOWN if as_words and known == regex_of(splits[0])), WHOLE)


def is_special(token: dict[str, Any], end: str | None) -> bool:
    """Whether an added token stands for no text."""
    return token.get("special") is True or token.get("content") == end


def library(content: dict[str, Any], end: str | None) -> Library:
    """The library's tokenizer of a checked file, for which the text of a special token is text, and which adds nothing.

    Args:
        content: of the file.
        end: the token that is end-of-text, which is special whatever the file says.

    Raises:
        ValueError: the library refuses it.
    """
    none = dict.fromkeys(("normalizer", "post_processor", "truncation", "padding", "decoder"))
    added = [{**token, "special": is_special(token, end)} for token in content.get("added_tokens", [])]
    try:
        made = Library.from_str(json.dumps({**content, **none, "added_tokens": added}))
    except Exception as error:  # it has no class of its own for them
        raise ValueError(f"the library refuses it: {error}") from None
    made.encode_special_tokens = True
    return made
