"""The files that a path of the user's means: a file itself, the texts below a folder, or what matches a glob."""

import os
import re
from difflib import get_close_matches
from pathlib import Path

from gpt.config import UserError
from gpt.data.source import rows

ENDING = re.compile(r"\.(txt|md)(\.gz)?$", re.IGNORECASE)
"""How the names of plain text end in a folder; there are tables beside it."""

WILD = re.compile(r"[*?[]")
"""What makes a path a glob."""


def kind(file: Path) -> str:
    """The kind of table that a file is, by its name; '' for plain text."""
    return rows.ending(str(file))


def files_at(path: Path, setting: str) -> list[Path]:
    """The files that a path means, sorted: a file, those below a folder, or what matches a glob.

    Raises:
        UserError: there is none, or they cannot be read; names the setting.
    """
    try:
        found = [path] if path.is_file() else below(path) if path.is_dir() else matching(path)
        if not found:
            raise UserError(f"{setting}: {none_at(path)}name a file, a folder or a glob")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{setting}: {path} cannot be read: {reason}; mend that, or name another") from None
    return sorted(found, key=Path.as_posix)


def below(folder: Path) -> list[Path]:
    """The files of text below a folder but for what is hidden or behind a link to another folder."""

    def refuse(error: OSError) -> None:
        raise error

    found = []
    for here, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(here, name) for name in names if not name.startswith(".")]
    return [file for file in found if holds_text(file) and file.is_file()]


def holds_text(file: Path) -> bool:
    """Whether a file that was not named itself is taken: a .json may be anything, settings for one."""
    return kind(file) not in ("", "json") or bool(ENDING.search(file.name))


def matching(pattern: Path) -> list[Path]:
    """The files that match a glob; hidden ones only where the glob names something hidden."""
    folder = existing(pattern)
    wild = pattern.relative_to(folder)
    if wild.name == "**":
        wild /= "*"  # files too, in all versions of Python
    hidden = any(part.startswith(".") for part in wild.parts)
    found = [file for file in folder.glob(str(wild)) if file.is_file()]
    return [file for file in found if hidden or "/." not in f"/{file.relative_to(folder).as_posix()}"]


def existing(path: Path) -> Path:
    """The last folder on the way to a path that is there; its own name may have brackets and is no glob."""
    return next((parent for parent in path.parents if parent.is_dir()), Path(path.anchor))


def none_at(path: Path) -> str:
    """Why there is no file at a path, with the nearest name."""
    if path.exists():
        return f"{path} is a folder without text; " if path.is_dir() else f"{path} is a device, a pipe or a socket; "
    folder = existing(path)
    missing = path.relative_to(folder)
    if WILD.search(str(missing)):
        return f"no file matches {path}; "
    names = [entry.name for entry in folder.iterdir() if entry.name != missing.parts[0]]
    close = "".join(f"did you mean {folder / name}? " for name in get_close_matches(missing.parts[0], names, n=1))
    return f"there is no {path}; {close}"
