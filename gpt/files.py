"""Files of plain data: read without trust, written to last."""

import json
import os
from pathlib import Path
from typing import Any

from gpt.config import UserError

LARGEST_JSON = 1 << 28
"""Bytes; a vocabulary of 200,000 tokens has about 2^22."""


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, whoever wrote it.

    Raises:
        UserError: it cannot be read, is no regular file of a sensible size, or holds something else.
    """
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_JSON:
            raise UserError(f"{path}: a JSON file is expected there")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path}: this is no JSON text, so the file is damaged") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: a JSON object is expected, so the file is damaged")
    return content


def sync(path: Path) -> None:
    """Have a file or folder on disk, not only in memory; Windows has no such call for folders."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def nearby(path: Path) -> str:
    """A path as it is typed from here: relative where it lies below the working directory."""
    full = path.absolute()
    return str(full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full)
