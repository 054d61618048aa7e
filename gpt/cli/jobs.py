"""The jobs of a sweep: what hydra's grammar sweeps, multiplied out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from hydra.core.override_parser.types import Glob
from hydra.errors import HydraException

from gpt.cli.composition import Groups, is_hydras, key_of, parsed
from gpt.config import UserError
from gpt.literal import is_text

REFUSED = {
    "hydra.run.dir": "each job of a sweep has a folder in the sweep's own, which is named by hydra.sweep.dir=…",
    "hydra.sweep.subdir": "the folders of a sweep's jobs are called by their numbers; leave it out",
    "hydra.sweeper": "a sweep runs every combination of the values given, and no other sweeper; leave it out",
}
"""Settings of hydra's that mean nothing here, and why."""


@dataclass(frozen=True)
class Job:
    """One of a sweep's jobs."""

    number: int
    """From 1; also the name of its folder."""
    total: int
    """How many jobs the sweep has."""
    argv: Sequence[str]
    """What would have to be typed for this job alone."""
    differs: Mapping[str, str]
    """The settings that are not the same in all jobs, as they are typed."""

    def __str__(self) -> str:
        """'job 2 of 6: seed=1 optimizer=muon'."""
        settings = " ".join(f"{key}={value}" for key, value in self.differs.items())
        return f"job {self.number} of {self.total}{': ' if settings else ''}{settings}"


def jobs_of(argv: Sequence[str], groups: Groups) -> list[Job]:
    """Every combination of what `argv` sweeps, the last one fastest.

    Of a setting that is given twice the later one counts.

    Args:
        argv: the arguments; flags are passed over.
        groups: each choice, and what can be chosen.

    Raises:
        UserError: a sweep that names no values, or a setting that no sweep can have.
    """
    values: dict[str, list[str]] = {}
    signs: dict[str, str] = {}
    for argument in argv:
        if not argument.startswith("-"):
            key = key_of(argument)
            values[key] = _values(argument, groups)
            signs[key] = argument.partition(key)[0]
    differing = [key for key, several in values.items() if len(set(several)) > 1]
    combinations = [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]
    return [
        Job(
            number,
            len(combinations),
            [f"{signs[key]}{key}{value}" for key, value in combination.items()],
            {key: combination[key].removeprefix("=") for key in differing},
        )
        for number, combination in enumerate(combinations, 1)
    ]


def _values(argument: str, groups: Groups) -> list[str]:
    """What stands after the key of `argument`, for each value that it sweeps: ['=adamw', '=muon']."""
    key = key_of(argument)
    _, equals, value = argument.partition("=")
    for refused, why in REFUSED.items():
        if key.replace("/", ".") == refused or key.replace("/", ".").startswith(f"{refused}."):
            raise UserError(f"{key}: {why}")
    if not equals or not key or is_text(key) or is_hydras(key) or argument.startswith("~"):
        return [equals + value]
    override = parsed(f"{key}={value}")
    if not override.is_sweep_override():
        return [equals + value]
    try:
        several = override.value()
        found = several.filter(list(groups.get(key, []))) if isinstance(several, Glob) else None
        swept = list(override.sweep_string_iterator()) if found is None else found
    except (HydraException, ValueError) as error:
        raise UserError(f"{argument}: no values can be made of this: {error}") from error
    if not swept:
        raise UserError(f"{argument}: no value is among these; see --help for what can be chosen")
    return [equals + value for value in swept]
