"""In which settings runs differ."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpt.config import leaves, shown
from gpt.training.defaults import variant_defaults

Flat = Mapping[str, Any]
"""A run's settings by dotted path."""

UNTOLD = ("name", "debug", "resume", "logger")
"""Settings that say nothing of how a run goes."""

ABSENT = ""
"""In place of a setting that a run does not have, as another variant has it."""


def flat(settings: Mapping[str, Any]) -> Flat:
    """The settings that say how a run goes."""
    return {path: value for path, value in leaves(settings).items() if path.split(".")[0] not in UNTOLD}


def differing(runs: Sequence[Flat]) -> list[str]:
    """The paths of settings that are not the same in all runs, in the order in which they are first met.

    What a variant brings with it is no difference of its own beside that of the variants' names.
    """
    chosen = [path.removesuffix(".name") for path in not_alike(runs) if path.endswith(".name")]
    return not_alike([without_defaults(run, chosen) for run in runs])


def not_alike(runs: Sequence[Flat]) -> list[str]:
    """All paths whose values are not the same in all runs, also those that some have not."""
    paths = dict.fromkeys(path for run in runs for path in run)
    return [path for path in paths if len({repr(run.get(path, ABSENT)) for run in runs}) > 1]


def without_defaults(run: Flat, choices: Iterable[str]) -> Flat:
    """A run's settings but for those that the variants of these choices come with."""
    brought = {
        f"{choice}.{key}": value
        for choice in choices
        for key, value in leaves(variant_defaults(choice, str(run.get(f"{choice}.name")))).items()
        if key != "name"
    }
    return {path: value for path, value in run.items() if path not in brought or brought[path] != value}


def cell(run: Flat, path: str) -> str:
    """A setting of a run as it is read."""
    return readable(run.get(path, ABSENT))


def readable(value: Any) -> str:
    """A value; words without quotation marks, since nobody mistakes them here."""
    return value if isinstance(value, str) else shown(value)


def typed_as(path: str) -> str:
    """What is typed to set what stands at a path: a choice is typed like a folder.

    >>> typed_as("model.attention.name"), typed_as("model.n_layer")
    ('model/attention', 'model.n_layer')
    """
    return path.removesuffix(".name").replace(".", "/") if path.endswith(".name") else path
