"""Files of plain data: read without trust, written to last."""

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpt.config import RunError, UserError

try:
    import fcntl
except ImportError:  # Windows, where what a killed process leaves is not removed
    fcntl = None  # type: ignore[assignment]

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of the errors that tell of a disk, or one's share of it, without room."""

AT_WORK = ".at-work"
"""A file in a temporary folder, locked for as long as its process lives."""

LARGEST_JSON = 1 << 25
"""Bytes; a vocabulary of 200,000 tokens has about 2^22."""
LARGEST_SETTINGS = 1 << 16
"""Bytes of a file of settings; a run's configuration has about 2^11."""
DEEPEST = 50
"""Lists and objects in one another; what goes through all of them by calling itself needs an end."""


def read_json(path: Path, largest: int = LARGEST_JSON) -> dict[str, Any]:
    """The object in a JSON file, whoever wrote it.

    Args:
        path: the file's.
        largest: bytes that it may have.

    Raises:
        UserError: it cannot be read, is no file of its own folder of a sensible size, or holds something else.
    """
    try:
        if not is_own(path) or path.stat().st_size > largest:
            raise UserError(f"{path}: a JSON file is expected there")
        content = json.loads(path.read_bytes())
        if is_deep(content):
            raise RecursionError
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path}: this is no JSON text, so the file is damaged") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: a JSON object is expected, so the file is damaged")
    return content


def is_own(path: Path) -> bool:
    """Whether there is a regular file which lies in its folder itself: no link leads out of there."""
    return path.is_file() and path.resolve().parent == path.parent.resolve()


def is_deep(content: Any) -> bool:
    """Whether there are more than `DEEPEST` lists and mappings in one another."""
    level = [content]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level if isinstance(outer, list | dict) for inner in _inside(outer)]
    return bool(level)


def _inside(outer: list[Any] | dict[Any, Any]) -> Iterable[Any]:
    return outer.values() if isinstance(outer, dict) else outer


def is_full(error: Exception) -> bool:
    """Whether an error tells of a disk without room; safetensors gives the number in words only."""
    numbers = FULL if not isinstance(error, OSError) else ()
    return getattr(error, "errno", None) in FULL or any(f"os error {number}" in str(error) for number in numbers)


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


def refuse_unwritable(setting: str, folder: Path) -> None:
    """Refuse a folder that could not be written to in the end, before anything is computed.

    Args:
        setting: that named it.
        folder: may not be there yet.

    Raises:
        UserError: it is no folder, or cannot be written to or made.
    """
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        raise UserError(f"{setting}: {folder}: {there} is no folder that can be written to; name another one")


@contextmanager
def writing(setting: str, folder: Path) -> Iterator[None]:
    """Have it told in one line that what shall be written into a folder cannot be.

    Args:
        setting: that names the folder.
        folder: made where it is not there.

    Raises:
        UserError: it cannot be written to.
        RunError: the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if is_full(error):
            raise RunError(
                f"{setting}: {folder}: no room is left on the disk; make some, or name a folder on another"
            ) from None
        raise UserError(f"{setting}: {folder}: cannot be written: {error.strerror}; name another folder") from None


@contextmanager
def workshop(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder below `parent` to make something whole in, gone when that is done, or a later call finds it abandoned.

    Args:
        parent: an existing folder, on whose file system the work shall lie.
        prefix: of the folder's name; folders of that prefix whose process was killed are removed.

    Raises:
        OSError: the folder cannot be made.
    """
    for path in parent.glob(f"{prefix}*"):
        if _abandoned(path):
            shutil.rmtree(path, ignore_errors=True)
    with (
        TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True) as name,
        (Path(name) / f"{AT_WORK}.new").open("w") as mark,
    ):
        with suppress(OSError):  # a file system without locks: then nobody can tell, and what is left stays
            # Locked before it has the name that is looked for: nobody finds it unlocked.
            if fcntl:
                fcntl.flock(mark, fcntl.LOCK_EX)
                Path(mark.name).rename(Path(name) / AT_WORK)
        yield Path(name)


def hold(folder: Path) -> int | None:
    """Have a folder for this process alone, until it closes what it gets or ends, however it does.

    Returns:
        A descriptor to close; None on a system or file system without locks, where nobody is kept out.

    Raises:
        BlockingIOError: another process has it.
        OSError: it cannot be opened.
    """
    if not fcntl:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


def is_held(folder: Path) -> bool:
    """Whether a process has the folder by `hold`."""
    if not fcntl:
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def write_whole(path: Path, text: str) -> None:
    """Write a file of text, or put it in the place of one: it is the old or the new one at any moment."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")  # as `asides` finds it
    try:
        aside.unlink(missing_ok=True)  # a link of that name would be written through
        with aside.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        sync(aside)
        aside.replace(path)
        sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def asides(path: Path) -> list[Path]:
    """What processes that were killed in `write_whole` have left, or others are about to write, of a file."""
    return [aside for aside in path.parent.glob(f".{path.name}.*") if aside.suffix[1:].isdecimal()]


def _abandoned(folder: Path) -> bool:
    """Whether the process that made a workshop is no more."""
    if not fcntl:
        return False
    try:
        if not is_own(folder / AT_WORK):  # a pipe, say, would be waited for
            return False
        with (folder / AT_WORK).open() as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
