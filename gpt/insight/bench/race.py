"""A race: contenders are measured in turn, so what changes with time meets all of them alike."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple, TypeVar

import torch

from gpt.contention import DISTURBED, Reading, foreign_share, read
from gpt.generation.decoder.prepared import Quantize
from gpt.insight.bench.limits import Ceiling
from gpt.peak import synchronize

OURS = "ours"
"""The name of ours among the contenders; all others are peers."""

T = TypeVar("T")


class Entry(NamedTuple):
    """Who is measured."""

    name: str
    precision: str
    compile_seconds: float | None = None
    """What compiling it took; None where it is eager."""
    quantize: Quantize | None = None
    """What its weights are rounded to; None: they are in the precision."""


class Contender(NamedTuple):
    """Something that does work, a part at a time."""

    entry: Entry
    work: Callable[[], int]
    """Does a part, and says how many tokens it was; on cuda it need not wait for the device."""


class Race(NamedTuple):
    """Contenders that do the same."""

    title: str
    contenders: Sequence[Contender]
    ceiling: Ceiling


@dataclass
class Standing:
    """What was measured of a contender."""

    entry: Entry
    speeds: list[float] = field(default_factory=list)
    """Tokens per second, a number for each repeat."""
    disturbed: int = 0
    """How many of them were disturbed by others, and kept since redoing did not help."""

    @property
    def speed(self) -> float:
        """The median, in tokens per second."""
        return median(self.speeds)


class Outcome(NamedTuple):
    """A race that was run; it does not hold the contenders, whose memory the next race needs."""

    title: str
    standings: Sequence[Standing]
    ceiling: Ceiling


class Rules(NamedTuple):
    """How a race is run."""

    repeats: int
    seconds: float
    """Of a measurement, at least."""
    redos: int
    """Of a measurement that others disturbed."""
    device: torch.device


def run(race: Race, rules: Rules, advance: Callable[[float], None], load: Callable[[], Reading] = read) -> Outcome:
    """Measure every contender `repeats` times, after a first time that does not count.

    Args:
        race: who competes.
        rules: how.
        advance: is told after each measurement what part of the race it was; the parts add up to 1.
        load: how busy the processor is now.
    """
    starters = [(c, Standing(c.entry)) for c in race.contenders]
    part = 1 / ((rules.repeats + 1) * len(starters))
    for contender, _ in starters:
        measure(contender, rules)
        advance(part)
    for repeat in range(rules.repeats):
        for contender, standing in rotated(starters, repeat):
            speed, disturbed = undisturbed(contender, rules, load)
            standing.speeds.append(speed)
            standing.disturbed += disturbed
            advance(part)
    return Outcome(race.title, [standing for _, standing in starters], race.ceiling)


def rotated(items: Sequence[T], repeat: int) -> Sequence[T]:
    """All of them, each repeat beginning with the next one: none is always first.

    >>> rotated("abc", 0), rotated("abc", 4)
    (['a', 'b', 'c'], ['b', 'c', 'a'])
    """
    first = repeat % len(items)
    return [*items[first:], *items[:first]]


def undisturbed(contender: Contender, rules: Rules, load: Callable[[], Reading]) -> tuple[float, bool]:
    """Tokens per second, and whether it is of a disturbed measurement, the least one of all tries."""
    tries = []
    for _ in range(1 + rules.redos):
        before = load()
        speed = measure(contender, rules)
        share = foreign_share(before, load(), os.cpu_count() or 1)
        if share is None or share <= DISTURBED:
            return speed, False
        tries.append((share, speed))
    return min(tries)[1], True


def measure(contender: Contender, rules: Rules) -> float:
    """Tokens per second over whole parts of work that last `seconds` or more."""
    synchronize(rules.device)
    start, tokens = time.perf_counter(), 0
    while not tokens or time.perf_counter() - start < rules.seconds:
        tokens += contender.work()
    synchronize(rules.device)
    return tokens / (time.perf_counter() - start)
