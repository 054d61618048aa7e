"""The loop: batch, loss, guard, update, log, evaluate, save. It receives objects, not configurations."""

import math
import shlex
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gpt.config import ROOT, RunError
from gpt.data.batches import Batches
from gpt.device import DTYPES, memory_taken
from gpt.files import nearby
from gpt.peak import peak_flops
from gpt.processes import Processes
from gpt.run_folder import RunFolder
from gpt.signals import Interrupted, postponed
from gpt.training.evaluation import Evaluation, Evaluator
from gpt.training.horizon import Horizon
from gpt.training.logger import Loggers
from gpt.training.memory import memory_told
from gpt.training.meter import Meter
from gpt.training.optimizer import optimizer_state
from gpt.training.samples import Samples
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
    save_every: int | None
    """Updates between two checkpoints; None: time counts."""
    save_seconds: float | None = None
    """Seconds between two checkpoints; None: updates count."""


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
    samples: Samples
    """Keeps what the model writes."""
    meter: Meter = field(default_factory=Meter)

    def fit(self) -> Evaluation | None:
        """Train; the evaluation of the last weights, None without a validation split.

        Raises:
            RunError: the training came to numbers that are not finite.
            Interrupted: a signal came; the update that it came in was finished, and saved.
        """
        evaluation = None
        self.saved_at = time.perf_counter()
        self.utilisation = self.utilisation_of_a_token()
        self.spikes = self.update.guard.check().spikes  # of a resumed run they were told of
        self.meter.restart()
        with postponed() as signals:
            for step in self.horizon:
                self.set_learning_rate(self.horizon.progress(step))
                if self.update.model.config.dropout:
                    seed_dropout(self.batches.seed, step, self.processes.rank)
                self.meter.add(*self.make(step))

                last, signal = self.horizon.reached(step), self.agreed(signals.number)
                if last or signal or is_due(step, LOG_EVERY):
                    self.log(step)
                if last or is_due(step, self.rhythm.eval_every):
                    evaluation = self.evaluation(step)
                    self.samples.take(step + 1, last, self.update.spread, self.horizon)
                    self.meter.restart()
                    signal = self.agreed(signals.number)  # once more: evaluating takes time
                else:
                    evaluation = None
                final = last or signal > 0
                if final or self.is_save_due(step) or self.is_best(evaluation):
                    self.save(step, evaluation, final)
                if signal:
                    break
            signal = self.agreed(signals.number)
        if signal:
            raise Interrupted(signal, self.way_on())
        if evaluation and not math.isfinite(evaluation.loss):
            raise RunError(f"training: the last validation loss is {evaluation.loss}; lower optimizer.lr")
        return evaluation

    def utilisation_of_a_token(self) -> float:
        """The share of the best matrix products that one token a second takes, of all processes' devices together."""
        precision = self.update.precision
        with self.horizon.aside("probing"):
            peak = torch.tensor(peak_flops(precision.device, DTYPES[precision.name]), device=precision.device)
            return self.update.model.flops_per_token() / float(self.processes.total(peak))

    def make(self, step: int) -> tuple[Tensor, Tensor]:
        """One update; its loss and the gradient's norm, on the device."""
        accumulate = self.rhythm.accumulate
        micro_batches = self.update.spread.micro_batches(self.batches, step, accumulate)
        with memory_told(self.update, self.batches, accumulate, self.run.folder):
            return self.update(micro_batches)

    @property
    def processes(self) -> Processes:
        """Those that train together."""
        return self.update.spread.processes

    def agreed(self, signal: int | None) -> int:
        """The signal that any of the processes got; 0: none did."""
        return int(*self.processes.largest(signal or 0))

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
        rates = {group["name"]: group["lr"] for group in self.update.guard.optimizer.param_groups}
        metrics = {
            **self.counts(step),
            "lr": rates.get("matrices", next(iter(rates.values()))),
            "loss": loss,
            "grad_norm": norm,
            "tokens_per_second": updates * tokens / seconds,
            "mfu": updates * tokens / seconds * self.utilisation,
            **memory_taken(self.update.precision.device),
            **self.update.guard.check()._asdict(),
        }
        if metrics["spikes"] > self.spikes:
            self.spikes = int(metrics["spikes"])
            warnings.warn(f"step {step + 1:,}: a loss lay far above the last ones, {self.spikes} so far", stacklevel=2)
        self.run.log(metrics)
        self.loggers.log(metrics, self.horizon.progress(step))

    def evaluation(self, step: int) -> Evaluation | None:
        """Evaluate the validation split and log it."""
        if self.evaluate is None:
            return None
        with self.horizon.aside("evaluating"):
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
        """Whether the loss is lower than that of any checkpoint."""
        if evaluation is None:
            return False
        best = self.run.best
        lowest = best.state.validation_loss if best else None
        return self.processes.told(evaluation.loss < (math.inf if lowest is None else lowest))

    def is_save_due(self, step: int) -> bool:
        """Whether the time, or the updates, between two checkpoints are over."""
        if self.rhythm.save_every:
            return is_due(step, self.rhythm.save_every)
        (waited,) = self.processes.largest(time.perf_counter() - self.saved_at)
        return waited >= (self.rhythm.save_seconds or math.inf)

    def save(self, step: int, evaluation: Evaluation | None, final: bool) -> None:
        """Write a checkpoint of the weights after `step`.

        Raises:
            RunError: it is the `final` one, and cannot be written; before, the training goes on with a warning.
        """
        loss = evaluation.loss if evaluation and math.isfinite(evaluation.loss) else None
        accumulate = self.rhythm.accumulate
        state = {
            **self.counts(step),
            **self.update.state(),
            "asides": dict(self.horizon.asides),
            "accumulate": accumulate,
            "validation_loss": loss,
        }
        weights = self.update.spread.weights()
        optimizer = optimizer_state(self.update.model, self.update.guard.optimizer)
        try:
            self.processes.led(lambda: self.run.save(weights, optimizer, state))
        except RunError as error:
            if final:
                raise
            warnings.warn(f"step {step + 1:,} is not saved, and the training goes on: {error}", stacklevel=2)
        self.saved_at = time.perf_counter()
        self.meter.restart()

    def counts(self, step: int) -> dict[str, Any]:
        """How far the training is after `step`."""
        done = step + 1
        return {"step": done, "tokens": done * self.batches.tokens_per_step, "elapsed": self.horizon.elapsed}


def is_due(step: int, every: int) -> bool:
    """Whether something that happens every `every` updates does after `step`."""
    return (step + 1) % every == 0


def seed_dropout(seed: int, step: int, rank: int = 0) -> None:
    """Have what an update draws depend on seed, step and process only, so that resuming needs no random state."""
    sequence = np.random.SeedSequence((seed, step), spawn_key=(rank,) if rank else ())
    torch.manual_seed(int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1)))
