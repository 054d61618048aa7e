"""What a training's updates and a text's cache take in memory, found without taking it.

The updates are made by `gpt.training`'s own code on pretended tensors (`watch.py`), so that what is kept for the
backward, casts to bf16 and the optimizer's temporaries are counted as they come, for any variant. Not seen is what
kernels take within themselves, and what an allocator wastes. On a CPU that is estimated:

    resident = libraries + (1 + waste) · most of small storages + most of large ones

The C library keeps what small storages had for others, in pieces that do not all fit; what large ones had goes back.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gpt.device import DTYPES, Precision
from gpt.insight.plan.watch import Watch, pretended
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.guard import Guard
from gpt.training.parallel import Spread
from gpt.training.settings import TrainSettings
from gpt.training.update import Update

LIBRARIES = {"fp32": 35_000_000, "bf16": 80_000_000}
"""Bytes that kernels and their libraries take on a CPU, by precision, measured (docs/experiments.md)."""

WASTE = 1 / 3
"""Of what small storages take on a CPU at most, that is lost between them, likewise."""

UPDATES = 2
"""The first makes the optimizer's state, the second has it from its beginning."""

MICRO_STEPS = 2
"""Of an update, at most: the second one has gradients beside it, and others change nothing."""


class Memory(NamedTuple):
    """What the updates of a training take, in bytes."""

    weights: int
    """With what of positions is stored."""
    gradients: int
    optimizer: int
    """What it keeps between updates."""
    activations: int
    """What a micro-step's forward leaves for its backward, with the loss's."""
    peak: int
    """All together at most, with what lives for a moment only; they do not have their most at one time."""
    resident: int
    """What the process grows by, at most: on a CPU with libraries and waste, elsewhere the peak."""


class Cached(NamedTuple):
    """What the memory of one text takes while it is written, in bytes, in numbers of the training's precision."""

    full: int
    """With as many tokens as the context."""
    token: float
    """What a token adds there; 0 where it takes another's place."""


class Pretended(Spread):
    """A model where it was made."""

    def lay(self, model: GPT, processes: Processes) -> GPT:
        """As it is."""
        return model


class PretendedUpdate(Update):
    """An update of tokens that are on the device."""

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor


class Noting(Guard):
    """Notes what is there between forward and backward."""

    def note(self, watch: Watch) -> "Noting":
        """By a watch."""
        self.watch, self.noted = watch, 0
        return self

    def backward(self, loss: Tensor) -> None:
        """Before anything else."""
        self.noted = max(self.noted, self.watch.live)
        super().backward(loss)


def training_memory(settings: TrainSettings, vocabulary: int, precision: Precision, accumulate: int) -> Memory:
    """What updates of so many micro-steps take.

    Args:
        settings: of the training.
        vocabulary: of its tokenizer.
        precision: what it computes in.
        accumulate: micro-steps; in place of the settings'.
    """
    rows = settings.batch_size // accumulate
    with pretended(precision.device) as watch:
        model = settings.build_model(vocabulary)
        weights = watch.live
        optimizer = settings.optimizer.build(model)
        scaler = torch.amp.GradScaler(precision.device.type, enabled=False)
        guard = Noting(optimizer, settings.clip, scaler, settings.skip_spikes).note(watch)
        spread = Pretended(model, Processes(precision.device))
        update = PretendedUpdate(spread, guard, precision, 0 if settings.packing == "documents" else None)
        inputs, targets = torch.zeros(2, rows, model.config.context, dtype=torch.int64)
        for _ in range(UPDATES):
            watch.restart()
            guard.noted, before = 0, watch.live
            update([(inputs, targets)] * min(accumulate, MICRO_STEPS))
        state = [t for held in optimizer.state.values() for t in held.values() if isinstance(t, Tensor)]
        gradients = sum(p.nbytes for p in model.parameters() if p.requires_grad)
        kept = sum(tensor.nbytes for tensor in state)
        activations = guard.noted - before - (gradients if accumulate > 1 else 0)
        return Memory(weights, gradients, kept, activations, watch.peak, resident(watch, precision))


def resident(watch: Watch, precision: Precision) -> int:
    """What a process grows by, at most, in which there was what a watch counted."""
    if precision.device.type != "cpu":
        return watch.peak
    return round(LIBRARIES[precision.name] + (1 + WASTE) * watch.most_small + watch.most_large)


def cache_memory(settings: TrainSettings, vocabulary: int, precision: Precision) -> Cached:
    """What a cache takes that holds a text as long as the context, and half of it."""
    with torch.device("meta"), torch.no_grad():
        model = settings.build_model(vocabulary).to(DTYPES[precision.name]).eval()
        context = model.config.context
        lengths = (max(1, context // 2), context)
        half, full = (cache_bytes(model, length) for length in lengths)
    return Cached(full, (full - half) / (lengths[1] - lengths[0]) if context > 1 else full)


def cache_bytes(model: GPT, length: int) -> int:
    """What a text's memory takes in all layers."""
    cache = model.build_cache(length)
    model.hidden(torch.zeros(1, length, dtype=torch.int64), cache=cache)
    return cache.nbytes()
