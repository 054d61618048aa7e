"""Where runs are: their folders found, and a folder for a new one claimed."""

from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from gpt.config import ROOT, UserError
from gpt.files import asides, nearby, refuse_unwritable

RUNS = ROOT / "runs"
CONFIG = "config.yaml"
"""The configuration in a run's folder."""
NAME_BYTES = 200
"""Of a run's name that its folder bears; file systems allow 255 in all."""


def run_folders() -> list[Path]:
    """The folders in `runs/` that have a configuration, jobs of sweeps among them, newest first."""
    files = [file for file in (*RUNS.glob(f"*/{CONFIG}"), *RUNS.glob(f"*/*/{CONFIG}")) if file.is_file()]
    return [file.parent for file in sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)]


def refuse_taken(folder: Path) -> None:
    """A run never overwrites another; one that was killed before it had a configuration is none.

    Raises:
        UserError: `folder` is there and holds something.
    """
    if folder.exists() and (not folder.is_dir() or {*folder.iterdir()} - {*asides(folder / CONFIG)}):
        raise UserError(
            f"{folder} is there already, and a run never overwrites another: name a new one (hydra.run.dir, of a sweep "
            f"hydra.sweep.dir), or go on with resume={nearby(folder)}"
        )


def refuse_unusable(wanted: Path | None) -> None:
    """Refuse what `claim_folder` would, without making anything.

    Raises:
        UserError: `wanted` is taken, or no folder can be made where it shall be.
    """
    if wanted:
        refuse_taken(wanted)
    refuse_unwritable("hydra.run.dir", wanted or RUNS)


def claim_folder(wanted: Path | None, name: str) -> Path:
    """Make the folder of a new run: `wanted`, or `runs/DATE_TIME_NAME` in the checkout.

    Of two runs that begin in the same second, the second one gets `-2`.

    Raises:
        UserError: `wanted` holds something, or a folder cannot be made.
    """
    if wanted is not None:
        _make_parents(wanted)
        with suppress(FileExistsError):
            wanted.mkdir()
        refuse_taken(wanted)
        return wanted
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).encode()[:NAME_BYTES].decode(errors="ignore")
    first = RUNS / f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{plain}"
    _make_parents(first)
    folder, numbers = first, count(2)
    while True:
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
        folder = first.with_name(f"{first.name}-{next(numbers)}")


def _make_parents(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"hydra.run.dir: {folder.parent} cannot be made: {error.strerror}; name another folder"
        ) from None
