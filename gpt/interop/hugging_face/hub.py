"""A model's folder: one that there is, or one that is fetched from the Hub and kept in data/downloads."""

import re
from pathlib import Path

from gpt.config import ROOT, UserError
from gpt.data.source.wording import innermost

DOWNLOADS = ROOT / "data" / "downloads"
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
"""Of a model on the Hub."""
WANTED = ("config.json", "generation_config.json", "tokenizer*", "model*.safetensors", "model.safetensors.index.json")
"""What is fetched: no pickle, and no code."""
PATIENCE = 10.0
"""Seconds within which the Hub must answer."""


def located(where: str) -> tuple[Path, str]:
    """The folder, and what it is called from anywhere.

    Args:
        where: a folder, or the name of a model on the Hub.

    Raises:
        UserError: it is neither; the Hub cannot be reached, or has no such model.
    """
    folder = Path(where).expanduser()
    if folder.is_dir():
        return folder, str(folder.absolute())
    if folder.exists() or not NAME.fullmatch(where):
        raise UserError(f"run: {folder} is no folder; name one that transformers wrote, or a model of the Hub")
    return fetched(where), where


def fetched(name: str) -> Path:
    """The folder of a model of the Hub; what was fetched before is not fetched again.

    Raises:
        UserError: the Hub cannot be reached, or has no such model.
    """
    from huggingface_hub import snapshot_download  # takes half a second

    folder = DOWNLOADS / name.replace("/", "--")
    try:
        snapshot_download(name, local_dir=folder, allow_patterns=list(WANTED), etag_timeout=PATIENCE)
    except Exception as error:  # of several libraries
        raise UserError(
            f"run: hf:{name} is no folder here, and could not be fetched from the Hub ({innermost(error)}); check the "
            "name and the network, or name a folder"
        ) from None
    return folder
