"""One update: micro-batches in, gradients added up, the guarded step of the optimizer."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gpt.config import UserError
from gpt.contention import foreign_share, read
from gpt.data.batches import IGNORE
from gpt.device import CompileMode, Forward, Precision, compile_forward
from gpt.model.mask import Where
from gpt.training.guard import Guard
from gpt.training.horizon import Horizon
from gpt.training.parallel import Spread

MicroBatch = tuple[Tensor, Tensor]
"""Inputs and targets on the host, each (rows, context) int64."""


class Cost(NamedTuple):
    """What an update takes before anything is compiled, and what became of compiling."""

    seconds: float
    """Forward and backward of one update, eager."""
    compiled: str
    """Whether the model is compiled, and why."""
    disturbed: float | None = None
    """The share of the processor that other programs used while that was measured; None where that is not known."""


class Update:
    """Applies one update; the loss is the mean over the targets of all micro-batches together.

    Args:
        spread: what is trained, and over which processes.
        guard: makes the optimizer's step.
        precision: what the forward computes in.
        separator: the token that begins a document, where tokens see only their own; None: they see all before them.
    """

    def __init__(self, spread: Spread, guard: Guard, precision: Precision, separator: int | None = None) -> None:
        self.spread = spread
        self.model = spread.model
        self.forward: Forward = spread.forward
        self.guard = guard
        self.precision = precision
        self.separator = separator

    def __call__(self, micro_batches: Sequence[MicroBatch]) -> tuple[Tensor, Tensor]:
        """The mean loss in nats and the gradient's norm, scalar tensors on the device; nothing is read back."""
        processes = self.spread.processes
        loss = processes.total(self.gradients(micro_batches, self.forward)) / processes.size
        return loss, self.guard.step(loss)

    def gradients(self, micro_batches: Sequence[MicroBatch], forward: Forward) -> Tensor:
        """Add up the gradients by `forward`; this process's part of the mean loss, times the number of processes.

        Dividing each micro-batch's sum by the count of all targets makes any split of a batch give one gradient, also
        where targets are masked and their number differs between micro-batches. Gradients of processes are averaged, so
        each divides by its share of the count.
        """
        there = [(self._to_device(inputs), self._to_device(targets)) for inputs, targets in micro_batches]
        processes = self.spread.processes
        count = torch.stack([(targets != IGNORE).sum() for _, targets in there]).sum()
        count = processes.total(count) / processes.size
        losses = []
        for number, (inputs, targets) in enumerate(there, 1):
            with self.spread.micro_step(last=number == len(there)):
                with self.precision.autocast():
                    loss = forward(inputs, targets, where_packed(inputs, self.separator)).sum() / count
                self.guard.backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def try_memory(self, micro_batch: MicroBatch) -> None:
        """Forward and backward of one micro-batch, for the memory that they take; its gradients are not shared.

        Twice: the second time beside the gradients of the first one.
        """
        inputs, targets = (self._to_device(tensor) for tensor in micro_batch)
        for _ in range(2):
            with self._random_state_kept(), self.spread.micro_step(last=False):
                with self.precision.autocast():
                    loss = self.forward(inputs, targets, where_packed(inputs, self.separator)).mean()
                self.guard.backward(loss)

    def compile(self, mode: CompileMode, micro_batches: Sequence[MicroBatch], horizon: Horizon) -> Cost:
        """Measure an update, and compile the forward as `mode` says and, for `auto`, where the horizon repays it.

        Raises:
            RunError: mode `strict`, and compiling failed.
        """

        def probe(forward: Forward) -> float:
            """Forward and backward, as in training; random state and gradients are left as they were."""
            with self._random_state_kept():
                loss = self.gradients(micro_batches, forward).item()  # read back: waits for the device
            self.guard.optimizer.zero_grad(set_to_none=True)
            return loss

        eager = self.spread.forward
        with horizon.aside("probing"):
            probe(eager)  # the first call is slower than all that follow
            before = read()
            probe(eager)
            after = read()
        (seconds,) = self.spread.processes.largest(after.wall - before.wall)
        total, random = seconds * horizon.updates(seconds), self.model.config.dropout > 0
        with horizon.aside("compiling"):
            self.forward, compiled = compile_forward(eager, mode, total, probe, random)
        (failed,) = self.spread.processes.largest(self.forward is eager)
        if failed and self.forward is not eager:
            self.forward, compiled = eager, "off (it failed in another process)"
        alone = self.spread.processes.size == 1  # else the others are no strangers
        return Cost(seconds, compiled, foreign_share(before, after, os.cpu_count() or 1) if alone else None)

    def state(self) -> dict[str, Any]:
        """How updates are made, and what the guard counted: the part of a checkpoint's state that is known here."""
        device, compiled = self.precision.device.type, self.forward is not self.spread.forward
        return {**self.guard.state(), "device": device, "precision": self.precision.name, "compiled": compiled}

    def _random_state_kept(self) -> AbstractContextManager[None]:
        device = self.precision.device
        return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])

    def _to_device(self, tensor: Tensor) -> Tensor:
        if self.precision.device.type == "cuda":
            return tensor.pin_memory().to(self.precision.device, non_blocking=True)
        return tensor.to(self.precision.device)


def where_packed(tokens: Tensor, separator: int | None) -> Where | None:
    """Where tokens are that see only their own document, which begins with `separator`; None: all are in one."""
    return None if separator is None else Where.packed(tokens, separator)


def refuse_uneven(batch_size: int, accumulate: int) -> None:
    """An update's sequences are shared out evenly among its micro-steps.

    Raises:
        UserError: they do not divide.
    """
    if batch_size % accumulate:
        raise UserError(
            f"accumulate: batch_size {batch_size} is not divisible by accumulate {accumulate}; take a divisor"
        )
