"""Which runs are compared: all that there are, or those that are named, a sweep's folder standing for its jobs."""

import os
from collections.abc import Sequence
from pathlib import Path

from gpt import runs
from gpt.config import UserError
from gpt.files import nearby
from gpt.run_folder import TABLE
from gpt.runs import CONFIG

DEPTH = 2
"""Folders in one another below `runs/`: a sweep's jobs are one deeper than runs."""


def chosen(names: Sequence[str]) -> list[Path]:
    """The folders of the runs that are named, each once; without names all in `runs/`.

    Raises:
        UserError: one is no folder, or there is no run in it.
    """
    folders = [Path(name) for name in names] or [runs.RUNS]
    found = [run for folder in folders for run in runs_of(folder)]
    firsts: dict[Path, Path] = {}
    for run in found:
        firsts.setdefault(run.resolve(), run)
    return list(firsts.values())


def runs_of(folder: Path) -> list[Path]:
    """A run's folder itself, or the runs in it.

    Raises:
        UserError: it is no folder, or there is none.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"runs: {folder} is no folder; name the folders of runs, or of a sweep")
    if found := below(folder, DEPTH) if folder.is_dir() else []:
        return found
    if folder == runs.RUNS:
        raise UserError(f"runs: there is no run in {folder} yet; train one first: python train.py")
    what = "holds no run" if folder.is_dir() else "is not there"
    raise UserError(f"runs: {nearby(folder)} {what}; name the folders of runs, or of a sweep")


def below(folder: Path, depth: int) -> list[Path]:
    """The runs in a folder, itself one of them, as deep as they are looked for."""
    if is_run(folder):
        return [folder]
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if depth else []
    return [run for path in inside for run in below(path, depth - 1)]


def is_run(folder: Path) -> bool:
    """Whether there is a run, or what is left of one: a folder that was claimed is empty until the run begins."""
    there = any(os.path.lexists(folder / name) for name in (CONFIG, TABLE, "checkpoints"))
    return there or all(path.name.startswith(".") for path in folder.iterdir())
