"""What a prefix opens: hf:FOLDER_OR_NAME, nanogpt:FILE."""

from collections.abc import Callable, Mapping

from gpt.config import UserError
from gpt.interop.foreign import Foreign
from gpt.interop.hugging_face.reading import HuggingFace
from gpt.interop.nanogpt import NanoGpt

PREFIXES: Mapping[str, Callable[[str], Foreign]] = {"hf": HuggingFace, "nanogpt": NanoGpt}


def opened(text: str) -> Foreign | None:
    """The model that a text names by a prefix; None: it has no such prefix, and names a run.

    Raises:
        UserError: it cannot be opened.
    """
    prefix, colon, where = text.partition(":")
    if not colon or prefix not in PREFIXES:
        return None
    if not where:
        raise UserError(f"run: {text}: expected the name of a model after {prefix}:, got nothing")
    return PREFIXES[prefix](where)
