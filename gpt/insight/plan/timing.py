"""How long a training takes on this machine, from a few of its own updates and a part of an evaluation.

Compiled where the training would be: what is compiled is kept, and the training finds it.
"""

import os
import time
from collections.abc import Callable
from itertools import count
from statistics import median
from typing import NamedTuple

import torch

from gpt.contention import foreign_share, read
from gpt.device import CompileMode, Precision
from gpt.insight.plan.text import Planned
from gpt.peak import synchronize
from gpt.processes import Processes
from gpt.training.evaluation import build_evaluator
from gpt.training.guard import Guard
from gpt.training.parallel import Spread
from gpt.training.settings import TrainSettings
from gpt.training.update import Update

SECONDS = 5.0
"""That updates are measured for, the first one apart; one is measured at least."""

WINDOWS = 2
"""Batches of an evaluation that are measured at once."""

EVALUATIONS = 3
"""How often they are, after a first time."""


class Timing(NamedTuple):
    """What was measured, in seconds."""

    compiled: str
    """Whether the model is compiled, and why."""
    compiling: float
    """What that took here; what is kept makes the next time shorter."""
    update: float
    """The median update."""
    updates: int
    """How many were measured."""
    evaluation: float
    """A whole one; 0 where there is no validation split, or it is not known."""
    disturbed: float | None
    """The share of the processor that others used meanwhile; None where that is not known."""


def measured(
    settings: TrainSettings, text: Planned, precision: Precision, accumulate: int, mode: CompileMode
) -> Timing:
    """Make the model, compile it as `mode` says, update it for some seconds, and evaluate a part of the validation."""
    torch.manual_seed(settings.seed)
    model = settings.build_model(text.vocabulary)
    spread, batches = Spread(model, Processes(precision.device)), text.batches(settings)
    guard = Guard(settings.optimizer.build(model), settings.clip, precision.scaler(), settings.skip_spikes)
    separator = 0 if settings.packing == "documents" else None
    update = Update(spread, guard, precision, settings.separator(text.data.tokenizer) if text.data else separator)
    horizon, steps = settings.horizon(), count()
    first = spread.micro_batches(batches, 0, accumulate)
    compiled = update.compile(mode, first, horizon).compiled

    def one() -> None:
        update(spread.micro_batches(batches, next(steps), accumulate))

    clock(one, precision)  # slower than all that follow
    before, begin, times = read(), time.perf_counter(), [clock(one, precision)]
    while time.perf_counter() - begin < SECONDS:
        times.append(clock(one, precision))
    evaluation = evaluation_seconds(update, text, settings.batch_size // accumulate)
    disturbed = foreign_share(before, read(), os.cpu_count() or 1)
    return Timing(compiled, horizon.asides["compiling"], median(times), len(times), evaluation, disturbed)


def evaluation_seconds(update: Update, text: Planned, rows: int) -> float:
    """Of a whole evaluation, by its first windows."""
    if text.data is None or text.data.validation is None:
        return 0.0
    context, whole = update.model.config.context, len(text.data.validation)
    part = text.data.capped(WINDOWS * rows * context + 1)
    evaluate = build_evaluator(update, part, rows)
    assert evaluate is not None
    assert part.validation is not None
    evaluate()  # what a first call loads is not its own
    seconds = median(clock(evaluate, update.precision) for _ in range(EVALUATIONS))
    return seconds * whole / len(part.validation)


def clock(work: Callable[[], object], precision: Precision) -> float:
    """The seconds of some work, all of it done."""
    synchronize(precision.device)
    start = time.perf_counter()
    work()
    synchronize(precision.device)
    return time.perf_counter() - start
