"""Free text on the command line: all that follows the first = is the text, whatever characters it has.

Hydra's grammar refuses Japanese, quotes and commas, and makes a number of 2024; OmegaConf resolves `${x}`. So
the text reaches neither: a placeholder goes through both, and the text takes its place in what they give.
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
