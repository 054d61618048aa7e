"""One update: micro-batches in, gradients added up, the guarded step of the optimizer."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gpt.data.batches import IGNORE
from gpt.device import CompileMode, Forward, Precision, compile_forward
from gpt.model.gpt import GPT
from gpt.training.guard import Guard
from gpt.training.horizon import Horizon

MicroBatch = tuple[Tensor, Tensor]
"""Inputs and targets on the host, each (rows, context) int64."""


class Cost(NamedTuple):
    """What an update takes before anything is compiled, and what became of compiling."""

    seconds: float
    """Forward and backward of one update, eager."""
    compiled: str
    """Whether the model is compiled, and why."""


class Update:
    """Applies one update; the loss is the mean over the targets of all micro-batches together."""

    def __init__(self, model: GPT, guard: Guard, precision: Precision) -> None:
        self.model = model
        self.forward: Forward = model
        self.guard = guard
        self.precision = precision

    def __call__(self, micro_batches: Sequence[MicroBatch]) -> tuple[Tensor, Tensor]:
        """The mean loss in nats and the gradient's norm, scalar tensors on the device; nothing is read back."""
        loss = self.gradients(micro_batches)
        return loss, self.guard.step(loss)

    def gradients(self, micro_batches: Sequence[MicroBatch]) -> Tensor:
        """Add up the gradients; the mean loss.

        Dividing each micro-batch's sum by the count of all targets makes any split of a batch give one gradient, also
        where targets are masked and their number differs between micro-batches.
        """
        there = [(self._to_device(inputs), self._to_device(targets)) for inputs, targets in micro_batches]
        count = torch.stack([(targets != IGNORE).sum() for _, targets in there]).sum()
        losses = []
        for inputs, targets in there:
            loss = self.loss_sum(self.forward, inputs, targets) / count
            self.guard.backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def loss_sum(self, forward: Forward, inputs: Tensor, targets: Tensor) -> Tensor:
        """The sum of a micro-batch's losses by `forward`; all of it is on the device."""
        with self.precision.autocast():
            return forward(inputs, targets).sum()

    def compile(self, mode: CompileMode, micro_batches: Sequence[MicroBatch], horizon: Horizon) -> Cost:
        """Measure an update, and compile the forward as `mode` says and, for `auto`, where the horizon repays it.

        Raises:
            UserError: mode `strict`, and compiling failed.
        """
        seconds = self._measured(micro_batches)
        inputs, targets = map(self._to_device, micro_batches[0])

        def probe(forward: Forward) -> float:
            self.model.eval()  # dropout would make the two losses differ
            with torch.no_grad():
                loss = self.loss_sum(forward, inputs, targets).item()
            self.model.train()
            return loss

        self.forward, compiled = compile_forward(self.model, mode, seconds * horizon.updates(seconds), probe)
        return Cost(seconds, compiled)

    def _measured(self, micro_batches: Sequence[MicroBatch]) -> float:
        """Seconds of forward and backward, once warm; gradients and random state are left as they were."""
        device = self.precision.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            for _ in range(2):
                start = time.perf_counter()
                self.gradients(micro_batches).item()  # read back: waits for the device
                self.guard.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - start

    def _to_device(self, tensor: Tensor) -> Tensor:
        if self.precision.device.type == "cuda":
            return tensor.pin_memory().to(self.precision.device, non_blocking=True)
        return tensor.to(self.precision.device)
