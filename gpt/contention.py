"""Who used the processor? All of its work, from /proc/stat, against this process's own.

    foreign share = (processor seconds of all - processor seconds of this process) / (seconds x cores)

Time that a hypervisor gave to other guests (steal) counts as the others'.
"""

import os
import time
from pathlib import Path
from typing import NamedTuple

STAT = Path("/proc/stat")

DISTURBED = 0.03
"""Share of the processor that others may use during a measurement; /proc/stat's ticks alone make it up to 0.01."""

SHORTEST = 0.2
"""Seconds; in less a tick or two, which may come late, would be a tenth of all."""

BUSY = {"user": 1, "nice": 2, "system": 3, "irq": 6, "softirq": 7, "steal": 8}
"""Columns of its first line that are work, as proc(5) numbers them; the guests' time is in user and nice already."""


class Reading(NamedTuple):
    """Seconds up to a moment."""

    wall: float
    own: float
    """Processor seconds of this process, all threads, and of those that it started and that have ended."""
    machine: float | None
    """Processor seconds of everybody; None where the system does not tell."""


def read() -> Reading:
    """The reading of this moment."""
    ended = os.times()
    own = time.process_time() + ended.children_user + ended.children_system
    return Reading(time.perf_counter(), own, busy_seconds(STAT))


def busy_seconds(stat: Path) -> float | None:
    """Processor seconds of all processes on all cores since the start; None where there is no such file.

    >>> busy_seconds(Path("/nowhere/stat"))
    """
    try:
        with stat.open(encoding="ascii") as file:
            columns = file.readline().split()
    except OSError:
        return None
    return sum(int(columns[column]) for column in BUSY.values()) / os.sysconf("SC_CLK_TCK")


def foreign_share(before: Reading, after: Reading, cores: int) -> float | None:
    """The part of the processor, 0 to 1, that others used between two readings; None where that is not known.

    It is not where too little time lies between them: the system counts in ticks of a hundredth of a second.

    >>> foreign_share(Reading(0, 0, 100), Reading(2, 3, 103.5), cores=2)
    0.125
    """
    seconds = after.wall - before.wall
    if before.machine is None or after.machine is None or seconds < SHORTEST:
        return None
    others = (after.machine - before.machine) - (after.own - before.own)
    return max(0.0, others) / (seconds * cores)
