"""Where a run's metrics go besides metrics.csv: the contract of a logger variant.

A logger that fails never stops a training: it is dropped with one warning.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gpt.config import Variant
from gpt.run import RunFolder

Metrics = Mapping[str, float]
"""By name; always `step`, the number of updates done. Validation metrics' names begin with `validation_`."""


class RunInfo(NamedTuple):
    """What a logger is told before the first update."""

    run: RunFolder
    """Its folder and its whole configuration."""
    summary: Sequence[tuple[str, str]]
    """What it will do, as label and text."""


class Logger:
    """Told what happens in a run; a variant overrides what it cares for."""

    def start(self, info: RunInfo) -> None:
        """Before the first update."""

    def log(self, metrics: Metrics, progress: float) -> None:
        """New metrics; `progress` in (0, 1] is how far the training has come."""

    def finish(self) -> None:
        """After the last update, also where the run failed; returns in bounded time."""


class LoggerConfig(Variant):
    """A logger variant's configuration."""

    def build(self) -> Logger:
        """The logger."""
        raise NotImplementedError


class Loggers(Logger):
    """Several loggers as one; what goes wrong in one of them stays there."""

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self.loggers = list(loggers)

    def start(self, info: RunInfo) -> None:
        """All of them."""
        self._each(lambda logger: logger.start(info))

    def log(self, metrics: Metrics, progress: float) -> None:
        """All of them."""
        self._each(lambda logger: logger.log(metrics, progress))

    def finish(self) -> None:
        """All of them."""
        self._each(lambda logger: logger.finish())

    def _each(self, tell: Callable[[Logger], None]) -> None:
        for logger in list(self.loggers):
            try:
                tell(logger)
            except Exception as error:
                self.loggers.remove(logger)
                warnings.warn(f"{type(logger).__name__} failed and is left out from here on: {error}", stacklevel=3)
