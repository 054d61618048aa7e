"""The loop: batch, loss, guard, update, log, evaluate, save. It receives objects, not configurations."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gpt.checkpoint import State
from gpt.config import RunError
from gpt.data.batches import Batches
from gpt.run import RunFolder
from gpt.training.evaluation import Evaluation, Evaluator
from gpt.training.horizon import Horizon
from gpt.training.logger import Loggers
from gpt.training.schedule import Schedule
from gpt.training.update import Update

LOG_EVERY = 10
"""Updates between two rows of training metrics; the device is read only then."""


class Rhythm(NamedTuple):
    """The beat of a training."""

    accumulate: int
    """Micro-steps of one update."""
    eval_every: int
    """Updates between two evaluations."""
    save_every: int
    """Updates between two checkpoints."""


@dataclass
class Trainer:
    """Trains a model to its horizon."""

    update: Update
    """Applies one update to the model that it holds."""
    batches: Batches
    """The training data."""
    schedule: Schedule
    """Multiplier of the learning rates."""
    horizon: Horizon
    """How long."""
    rhythm: Rhythm
    """In how many micro-steps, how often to evaluate and to save."""
    evaluate: Evaluator | None
    """Evaluates the validation split; None where it is empty."""
    run: RunFolder
    """Where metrics and checkpoints go."""
    loggers: Loggers
    """Told what happens."""
    meter: "Meter" = field(default_factory=lambda: Meter())
    best_loss: float = math.inf

    def fit(self) -> Evaluation | None:
        """Train; the evaluation of the last weights, None without a validation split.

        Raises:
            RunError: the training came to numbers that are not finite.
        """
        evaluation = None
        self.meter.restart()
        for step in self.horizon:
            self.set_learning_rate(self.horizon.progress(step))
            loss, norm = self.update(self.batches.micro_batches(step, self.rhythm.accumulate))
            self.meter.add(loss, norm)

            last = self.horizon.reached(step)
            if last or is_due(step, LOG_EVERY):
                self.log(step)
            evaluation = self.evaluation(step) if last or is_due(step, self.rhythm.eval_every) else None
            if self.is_best(evaluation) or last or is_due(step, self.rhythm.save_every):
                self.save(step, evaluation)
        if evaluation and not math.isfinite(evaluation.loss):
            raise RunError(f"training: the last validation loss is {evaluation.loss}; lower optimizer.lr")
        return evaluation

    def set_learning_rate(self, progress: float) -> None:
        """Each group's peak times the schedule."""
        for group in self.update.guard.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * self.schedule(progress)

    def log(self, step: int) -> None:
        """A row of training metrics: means since the row before."""
        loss, norm, seconds, updates = self.meter.read()
        tokens = self.batches.tokens_per_step
        metrics = {
            **self.counts(step),
            "lr": next(g["lr"] for g in self.update.guard.optimizer.param_groups if g["name"] == "matrices"),
            "loss": loss,
            "grad_norm": norm,
            "tokens_per_second": updates * tokens / seconds,
            "skipped": self.update.guard.check(),
        }
        self.run.log(metrics)
        self.loggers.log(metrics, self.horizon.progress(step))

    def evaluation(self, step: int) -> Evaluation | None:
        """Evaluate the validation split and log it."""
        if self.evaluate is None:
            return None
        evaluation = self.evaluate()
        metrics = {
            **self.counts(step),
            "validation_loss": evaluation.loss,
            "validation_bits_per_byte": evaluation.bits_per_byte,
        }
        self.run.log(metrics)
        self.loggers.log(metrics, self.horizon.progress(step))
        self.meter.restart()
        return evaluation

    def is_best(self, evaluation: Evaluation | None) -> bool:
        """Whether no evaluation before was lower; remembers the lowest."""
        if evaluation is None or not evaluation.loss < self.best_loss:
            return False
        self.best_loss = evaluation.loss
        return True

    def save(self, step: int, evaluation: Evaluation | None) -> None:
        """Write a checkpoint of the weights after `step`."""
        loss = evaluation.loss if evaluation and math.isfinite(evaluation.loss) else None
        self.run.save(self.update.model, State(**self.counts(step), validation_loss=loss))
        self.meter.restart()

    def counts(self, step: int) -> dict[str, Any]:
        """How far the training is after `step`."""
        done = step + 1
        return {"step": done, "tokens": done * self.batches.tokens_per_step, "elapsed": self.horizon.elapsed}


def is_due(step: int, every: int) -> bool:
    """Whether something that happens every `every` updates does after `step`."""
    return (step + 1) % every == 0


class Meter:
    """Means of what the device computed since the last reading, and the time it took."""

    def __init__(self) -> None:
        self._values: list[Tensor] = []
        self._seconds = 0.0
        self.restart()

    def restart(self) -> None:
        """Leave out the time since the last `add`: it was spent on something else."""
        self._clock = time.perf_counter()

    def add(self, loss: Tensor, norm: Tensor) -> None:
        """One update's scalars; they stay on the device."""
        self._values.append(torch.stack((loss, norm)))
        now = time.perf_counter()
        self._seconds += now - self._clock
        self._clock = now

    def read(self) -> tuple[float, float, float, int]:
        """Mean loss, mean norm, seconds, updates; waits for the device."""
        updates = len(self._values)
        loss, norm = torch.stack(self._values).mean(dim=0).tolist()
        seconds = self._seconds + time.perf_counter() - self._clock
        self._values, self._seconds = [], 0.0
        self.restart()
        return loss, norm, seconds, updates
