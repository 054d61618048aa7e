"""Where a run's metrics go besides metrics.csv: the contract of a logger variant.

A logger that fails never stops a training: it is dropped with one warning.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from gpt.config import Variant
from gpt.run_folder import RunFolder

Metrics = Mapping[str, float]
"""By name; always `step`, the number of updates done. Validation metrics' names begin with `validation_`."""


COUNTS = ("step", "tokens", "elapsed")
"""Metrics that say how far a training is, not how it goes."""


class RunInfo(NamedTuple):
    """What a logger is told before the first update."""

    run: RunFolder
    """Its folder and its whole configuration."""
    summary: Sequence[tuple[str, str]]
    """What it will do, as label and text."""
    resumed_at: int = 0
    """The update after which a resumed run goes on: what was logged of later ones is void; 0 for a new run."""


class Logger:
    """Told what happens in a run; a variant overrides what it cares for."""

    def start(self, info: RunInfo) -> None:
        """Before the first update."""

    def log(self, metrics: Metrics, progress: float) -> None:
        """New metrics; `progress` in (0, 1] is how far the training has come."""

    def sample(self, step: int, text: str) -> None:
        """What the model writes after `step` updates, with each evaluation."""

    def finish(self) -> None:
        """After the last update, also where the run failed or was interrupted; returns in bounded time."""


class LoggerConfig(Variant):
    """A logger variant's configuration."""

    def build(self) -> Logger:
        """The logger."""
        raise NotImplementedError


class Loggers(Logger):
    """Several loggers as one; what goes wrong in one of them stays there."""

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self.loggers = list(loggers)

    @property
    def want_samples(self) -> bool:
        """Whether one of them overrides `sample`: writing texts takes time."""
        return any(type(logger).sample is not Logger.sample for logger in self.loggers)

    @contextmanager
    def told(self, info: RunInfo) -> Iterator[None]:
        """Within, a training runs, and they are told of it."""
        try:
            self.start(info)
            yield
        finally:
            self.finish()

    def start(self, info: RunInfo) -> None:
        """All of them."""
        self._each(lambda logger: logger.start(info))

    def log(self, metrics: Metrics, progress: float) -> None:
        """All of them."""
        self._each(lambda logger: logger.log(metrics, progress))

    def sample(self, step: int, text: str) -> None:
        """All of them."""
        self._each(lambda logger: logger.sample(step, text))

    def finish(self) -> None:
        """All of them."""
        self._each(lambda logger: logger.finish())

    def _each(self, tell: Callable[[Logger], None]) -> None:
        for logger in list(self.loggers):
            try:
                tell(logger)
            except Exception as error:
                self.loggers.remove(logger)
                with suppress(Exception):
                    logger.finish()
                warnings.warn(f"{type(logger).__name__} failed and is left out from here on: {error}", stacklevel=3)


def grouped(metrics: Metrics) -> dict[str, float]:
    """Metrics under the names by which dashboards group their curves; those of `COUNTS` keep their own.

    >>> grouped({"step": 7, "loss": 2.5, "lr": 0.1, "validation_loss": 3.0})
    {'step': 7, 'train/loss': 2.5, 'train/lr': 0.1, 'validation/loss': 3.0}
    """
    return {_group(name): value for name, value in metrics.items()}


def _group(name: str) -> str:
    if name in COUNTS:
        return name
    kind, _, rest = name.partition("_")
    return f"validation/{rest}" if kind == "validation" else f"train/{name}"
