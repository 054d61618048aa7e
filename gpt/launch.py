"""What torchrun tells a process of its place among the processes of a run, in its environment."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def is_launched() -> bool:
    """Whether torchrun, or what sets the same variables, started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def rank() -> int:
    """The number of this process among all of its run, from 0 on; 0 also for one that is alone."""
    return int(os.environ["RANK"]) if is_launched() else 0


def local_rank() -> int:
    """Its number among those on the same machine."""
    return int(os.environ.get("LOCAL_RANK", "0")) if is_launched() else 0


def local_size() -> int:
    """How many there are on the same machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if is_launched() else 1


@contextmanager
def heard() -> Iterator[None]:
    """Within, what is printed and warned of comes from rank 0 alone."""
    if not is_launched() or rank() == 0:
        yield
        return
    before = sys.stdout
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.stdout = nowhere
        try:
            yield
        finally:
            sys.stdout = before
