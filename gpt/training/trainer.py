"""The loop: batch, loss, guard, update, log, evaluate, save. It receives objects, not configurations."""

import math
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gpt.config import ROOT, RunError
from gpt.data.batches import Batches
from gpt.files import nearby
from gpt.run_folder import RunFolder
from gpt.signals import Interrupted, postponed
from gpt.training.evaluation import Evaluation, Evaluator
from gpt.training.horizon import Horizon
from gpt.training.logger import Loggers
from gpt.training.optimizer import optimizer_state
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
    write: Callable[[], str]
    """Writes a sample, with each evaluation, where a logger wants it."""
    meter: Meter = field(default_factory=Meter)

    def fit(self) -> Evaluation | None:
        """Train; the evaluation of the last weights, None without a validation split.

        Raises:
            RunError: the training came to numbers that are not finite.
            Interrupted: a signal came; the update that it came in was finished, and saved.
        """
        evaluation = None
        self.meter.restart()
        with postponed() as signals:
            for step in self.horizon:
                self.set_learning_rate(self.horizon.progress(step))
                if self.update.model.config.dropout:
                    seed_dropout(self.batches.seed, step)
                loss, norm = self.update(self.batches.micro_batches(step, self.rhythm.accumulate))
                self.meter.add(loss, norm)

                last = self.horizon.reached(step)
                if last or signals.number or is_due(step, LOG_EVERY):
                    self.log(step)
                evaluation = self.evaluation(step) if last or is_due(step, self.rhythm.eval_every) else None
                signal = signals.number  # read once more: evaluating takes time
                if self.is_best(evaluation) or last or signal or is_due(step, self.rhythm.save_every):
                    self.save(step, evaluation)
                if signal:
                    break
        if signals.number:
            raise Interrupted(signals.number, self.way_on())
        if evaluation and not math.isfinite(evaluation.loss):
            raise RunError(f"training: the last validation loss is {evaluation.loss}; lower optimizer.lr")
        return evaluation

    def way_on(self) -> str:
        """What a person who interrupted is told."""
        state = self.run.last.state if self.run.last else None
        if state is None or self.horizon.is_over(state.step, state.elapsed):
            return f"interrupted after the last step, and saved in {nearby(self.run.folder)}"
        again = shlex.join([nearby(ROOT / "train.py"), f"resume={nearby(self.run.folder)}"])
        return f"interrupted after step {state.step:,} and saved; to go on: python {again}"

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
        if self.loggers.want_samples:
            self.loggers.sample(step + 1, self.write())
        self.meter.restart()
        return evaluation

    def is_best(self, evaluation: Evaluation | None) -> bool:
        """Whether the loss is lower than that of any checkpoint."""
        best = self.run.best
        lowest = best.state.validation_loss if best else None
        return evaluation is not None and evaluation.loss < (math.inf if lowest is None else lowest)

    def save(self, step: int, evaluation: Evaluation | None) -> None:
        """Write a checkpoint of the weights after `step`."""
        model, loss = self.update.model, evaluation.loss if evaluation and math.isfinite(evaluation.loss) else None
        state = {**self.counts(step), **self.update.state(), "validation_loss": loss}
        self.run.save(model, optimizer_state(model, self.update.guard.optimizer), state)
        self.meter.restart()

    def counts(self, step: int) -> dict[str, Any]:
        """How far the training is after `step`."""
        done = step + 1
        return {"step": done, "tokens": done * self.batches.tokens_per_step, "elapsed": self.horizon.elapsed}


def is_due(step: int, every: int) -> bool:
    """Whether something that happens every `every` updates does after `step`."""
    return (step + 1) % every == 0


def seed_dropout(seed: int, step: int) -> None:
    """Have what an update draws depend on seed and step only, so that resuming needs no random state."""
    torch.manual_seed(int(np.random.SeedSequence((seed, step)).generate_state(1, np.uint64)[0] >> np.uint64(1)))
