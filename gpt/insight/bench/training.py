"""Training side by side: each contender does whole updates, from tokens on the host to new weights.

ours   gpt.training.update.Update with the configured optimizer, as train.py makes it
peers  forward and loss by their own code, backward, the same clipping, fused AdamW
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn, optim

from gpt.device import Precision
from gpt.insight.bench.race import Contender, Entry
from gpt.insight.bench.settings import BenchSettings
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.guard import Guard
from gpt.training.horizon import Horizon
from gpt.training.optimizer.adamw import FUSED, AdamwConfig
from gpt.training.parallel import Spread
from gpt.training.update import MicroBatch, Update

Loss = Callable[[Any, Tensor, Tensor], Tensor]
"""By a model: of inputs and targets, each (rows, context), the mean in nats."""

UPDATES = 16
"""How many different updates' tokens there are; they come again and again."""


def random_updates(settings: BenchSettings) -> list[list[MicroBatch]]:
    """The tokens of some updates: micro-batches of inputs and targets, each (rows, context) int64 on the host."""
    shape, rows = settings.shape, settings.batch_size // settings.accumulate
    assert shape.vocab_size is not None
    size = (UPDATES, settings.accumulate, rows, shape.context + 1)
    tokens = torch.randint(shape.vocab_size, size, generator=torch.Generator().manual_seed(settings.seed))
    return [[(part[:, :-1], part[:, 1:]) for part in update] for update in tokens]


def scaler_for(precision: Precision) -> torch.amp.GradScaler:
    """The loss scaler, which only fp16 needs."""
    return torch.amp.GradScaler(precision.device.type, enabled=precision.name == "fp16")


@dataclass
class Work:
    """One update after the other."""

    update: Callable[[Sequence[MicroBatch]], object]
    batches: Iterator[list[MicroBatch]]
    tokens: int
    """Of one update."""

    def __call__(self) -> int:
        """One update; how many tokens it was."""
        self.update(next(self.batches))
        return self.tokens


class Training:
    """One contender's model and optimizer, in any precision."""

    def __init__(self, model: Any, optimizer: optim.Optimizer, settings: BenchSettings) -> None:
        self.model = model
        self.optimizer = optimizer
        self.settings = settings
        self.batches = random_updates(settings)

    def eager(self, precision: Precision) -> Contender:
        """As it is."""
        raise NotImplementedError

    def compiled(self, precision: Precision) -> Contender | None:
        """Compiled now; None where that fails, which a warning has told."""
        raise NotImplementedError

    def work(self, update: Callable[[Sequence[MicroBatch]], object]) -> Work:
        """The tokens there are, again and again, by `update`."""
        return Work(update, cycle(self.batches), self.settings.batch_size * self.settings.model.context)


class OurTraining(Training):
    """Trains our model as train.py does."""

    def __init__(self, model: GPT, settings: BenchSettings) -> None:
        super().__init__(model, settings.optimizer.build(model), settings)

    def eager(self, precision: Precision) -> Contender:
        """As it is."""
        return Contender(Entry("ours", precision.name), self.work(self._update(precision)))

    def compiled(self, precision: Precision) -> Contender | None:
        """Compiled now; None where that fails, which a warning has told."""
        update, start = self._update(precision), time.perf_counter()
        update.compile(self.settings.compile, self.batches[0], Horizon(1))
        seconds = time.perf_counter() - start
        if update.forward is self.model:
            return None
        return Contender(Entry("ours", precision.name, seconds), self.work(update))

    def _update(self, precision: Precision) -> Update:
        spread = Spread(self.model, Processes(precision.device))
        return Update(spread, Guard(self.optimizer, self.settings.clip, scaler_for(precision)), precision)


class PeerTraining(Training):
    """Trains a peer.

    Args:
        name: the peer's.
        model: on its device, in training mode.
        loss: the mean one of a micro-batch, by the model or what compiling made of it, from inputs and targets.
        settings: of the updates.
    """

    def __init__(self, name: str, model: nn.Module, loss: Loss, settings: BenchSettings) -> None:
        super().__init__(model, peer_optimizer(model, settings), settings)
        self.name = name
        self.loss = loss

    def eager(self, precision: Precision) -> Contender:
        """As it is."""
        return Contender(Entry(self.name, precision.name), self.work(self._update(self.model, precision)))

    def compiled(self, precision: Precision) -> Contender:
        """Compiled now."""
        update, start = self._update(torch.compile(self.model), precision), time.perf_counter()
        update(self.batches[0])
        return Contender(Entry(self.name, precision.name, time.perf_counter() - start), self.work(update))

    def _update(self, forward: Any, precision: Precision) -> "PeerUpdate":
        return PeerUpdate(partial(self.loss, forward), self.optimizer, self.settings.clip, precision)


class PeerUpdate:
    """A peer's update.

    Args:
        loss: the mean one of a micro-batch, from inputs and targets.
        optimizer: over its parameters.
        clip: largest norm of the gradient; 0 does not clip.
        precision: of the forward.
    """

    def __init__(
        self,
        loss: Callable[[Tensor, Tensor], Tensor],
        optimizer: optim.Optimizer,
        clip: float,
        precision: Precision,
    ) -> None:
        self.loss = loss
        self.optimizer = optimizer
        self.clip = clip
        self.precision = precision
        self.scaler = scaler_for(precision)

    def __call__(self, micro_batches: Sequence[MicroBatch]) -> Tensor:
        """One update; the loss of its last micro-batch, a scalar on the device."""
        for inputs, targets in micro_batches:
            with self.precision.autocast():
                loss = self.loss(inputs.to(self.precision.device), targets.to(self.precision.device))
            self.scaler.scale(loss / len(micro_batches)).backward()
        self.scaler.unscale_(self.optimizer)
        if self.clip:
            nn.utils.clip_grad_norm_(self.optimizer.param_groups[0]["params"], self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def peer_optimizer(model: nn.Module, settings: BenchSettings) -> optim.Optimizer:
    """PyTorch's AdamW, fused, all parameters in one group; with our settings where ours is AdamW too."""
    chosen = settings.optimizer if isinstance(settings.optimizer, AdamwConfig) else AdamwConfig()
    return optim.AdamW(
        model.parameters(),
        lr=chosen.lr,
        betas=(chosen.beta1, chosen.beta2),
        eps=chosen.eps,
        weight_decay=chosen.weight_decay,
        fused=next(model.parameters()).device.type in FUSED,
    )
