"""What a script is, to its command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from gpt.config import Config

S = TypeVar("S", bound=Config)

Outcome = Mapping[str, str]
"""What came of a task, as columns for a sweep's table: {"validation loss": "1.3353"}."""


@dataclass(frozen=True)
class Script(Generic[S]):
    """A script: its settings, and what it does with them."""

    config_name: str
    """The yaml in `config_dir` that it starts from."""
    settings: type[S]
    """What the composed configuration must be."""
    task: Callable[[S, Path | None], Outcome | None]
    """Receives the settings and the folder to leave something in, where there is one."""
    config_dir: Path
    """A folder per choice, a file per option."""
    typed_as: str
    """How it is called."""
    claim: Callable[[Path | None, str], Path] | None
    """Makes the folder of a sweep: the one that is wanted, or a new one of that name; None: a sweep leaves none."""

    def debug(self, settings: S) -> bool:
        """Whether the traceback of an error is to be shown."""
        return bool(getattr(settings, "debug", False))
