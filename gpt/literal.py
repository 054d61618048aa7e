"""Free text on the command line: all that follows the first = is the text, whatever characters it has.

Hydra's grammar refuses Japanese, quotes and commas, and makes a number of 2024; OmegaConf resolves `${x}`. So
the text reaches neither: a placeholder goes through both, and the text takes its place in what they give. What is no
free text they read; `typed` writes either so that it is read as what it was.
"""

import os
import re
from typing import Any
from uuid import uuid4

TEXT_KEYS = frozenset({
    "prompt", "stop", "name", "run", "resume", "init", "to", "dataset.separator", "hydra.run.dir", "hydra.sweep.dir",
    "overrides", "dataset.column", "dataset.config", "dataset.split", "dataset.validation_split", "dataset.revision",
})  # fmt: skip
ESCAPED_KEYS = frozenset({"prompt", "stop", "dataset.separator"})
NULL_KEYS = frozenset({
    "dataset.separator", "dataset.validation_path", "dataset.config", "dataset.validation_split", "dataset.revision",
    "resume", "init", "to",
})  # fmt: skip
FOLDER_KEYS = frozenset({"run", "resume", "init", "to", "hydra.run.dir", "hydra.sweep.dir"})
"""In these ~ is the user's home, where the shell has not seen to it."""
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}
PLAIN = re.compile(r"(?!(?i:null|true|false|nan|inf)\Z)[A-Za-z_]\w*", re.ASCII)
"""A string that hydra's grammar takes for nothing else without quotes."""


def is_text(key: str) -> bool:
    """Whether all that follows `key=` is literal text: a name, a prompt, any path."""
    return key in TEXT_KEYS or key.endswith("path")


def is_nothing(key: str, value: str) -> bool:
    """Whether the value is null and the setting may be null; a file or run of that name is ./null."""
    return value == "null" and key in NULL_KEYS


def unescaped(text: str) -> str:
    r"""`text` with \n, \t and \\ as a newline, a tab and a backslash; other backslashes stay.

    >>> unescaped(r"C:\new \\n \d") == "C:\new \\n \\d"
    True
    """
    return re.sub(r"\\[nt\\]", lambda found: ESCAPES[found[0]], text)


def typed(key: str, value: Any) -> str:
    r"""The argument by which the setting `key` becomes `value`.

    >>> print(typed("dataset.separator", "\n"), typed("steps", 20), typed("tags", ["a", "it's", None, 1e-6]))
    dataset.separator=\n steps=20 tags=[a,'it\'s',null,1e-06]
    """
    if is_text(key) and value is not None:
        return f"{key}={escaped(value) if key in ESCAPED_KEYS else value}"
    return f"{key}={_in_grammar(value)}"


def escaped(text: str) -> str:
    """What `unescaped` makes `text` of."""
    for typed_as, meant in ((r"\\", "\\"), (r"\n", "\n"), (r"\t", "\t")):  # backslashes first
        text = text.replace(meant, typed_as)
    return text


def _in_grammar(value: Any) -> str:
    """A value as hydra's grammar reads it, and OmegaConf resolves it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(map(_in_grammar, value))}]"
    if not isinstance(value, str) or PLAIN.fullmatch(value):
        return str(value)
    # A backslash keeps OmegaConf from looking for an x in ${x}, another one the text's end from ending it: those that
    # stand before are doubled.
    kept = re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), kept) + "'"


class Texts:
    """The texts of one command line, each behind a placeholder that means the same to any parser."""

    PLACEHOLDER = re.compile(r"text_[0-9a-f]{32}")

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def held(self, key: str, text: str) -> str:
        """The placeholder for what was typed after `key=`."""
        placeholder = f"text_{uuid4().hex}"
        if key in FOLDER_KEYS:
            text = os.path.expanduser(text)  # noqa: PTH111 - ~nobody stays as it is
        self.texts[placeholder] = unescaped(text) if key in ESCAPED_KEYS else text
        return placeholder

    def restored(self, value: Any) -> Any:
        """`value` with the texts in place of the placeholders in its strings, however deep they are.

        Each string is read once: a text that looks like a placeholder stays as it is.
        """
        if isinstance(value, str):
            return self.PLACEHOLDER.sub(lambda found: self.texts.get(found[0], found[0]), value)
        if isinstance(value, dict):
            return {key: self.restored(inner) for key, inner in value.items()}
        return [self.restored(inner) for inner in value] if isinstance(value, list) else value
