"""The update's guard: clips gradients, skips an update whose loss or gradient is not finite, and notices spikes.

A spike is a loss that lies far above the last ones: by more than `FAR` of their standard deviations above their mean.
All decisions stay on the device: nothing is read back, so the host runs ahead of the device. The counts are tensors, to
be read when metrics are.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gpt.config import RunError
from gpt.training.parallel import whole

PATIENCE = 25
"""Updates that may be skipped in a row before the run is ended."""


WINDOW = 128
"""Losses that a loss is compared with."""

ENOUGH = 32
"""So many of them there must be."""

FAR = 6.0
"""Standard deviations; of losses that were normally distributed, one in a billion would lie farther up."""


class Counts(NamedTuple):
    """What a guard counted so far."""

    skipped: int
    """Updates that were not made."""
    spikes: int
    """Losses that lay far above those before."""


class Guard:
    """Around an optimizer: scale, clip, skip, step.

    Args:
        optimizer: steps over all its groups' parameters.
        clip: largest allowed norm of the whole gradient; 0 allows any.
        scaler: fp16's loss scaler; a disabled one changes nothing.
        skip_spikes: whether the update of a spike is skipped too.
    """

    def __init__(
        self, optimizer: Optimizer, clip: float, scaler: torch.amp.GradScaler, skip_spikes: bool = False
    ) -> None:
        self.optimizer = optimizer
        self.clip = clip
        self.scaler = scaler
        self.skip_spikes = skip_spikes
        device = self._parameters()[0].device
        self.skipped = torch.zeros((), device=device)
        self.skipped_in_a_row = torch.zeros((), device=device)
        self.spikes = torch.zeros((), device=device)
        self.losses = torch.full((WINDOW,), math.nan, device=device)
        """The last ones, oldest first; NaN where there was none so far."""

    def backward(self, loss: Tensor) -> None:
        """Add a micro-step's gradient."""
        self.scaler.scale(loss).backward()

    def step(self, loss: Tensor) -> Tensor:
        """Update by the gradients there are, unless `loss` or their norm is not finite; then forget them.

        Returns:
            The norm of the whole gradient before clipping, a scalar tensor.
        """
        if self.scaler.is_enabled():
            self.scaler.unscale_(self.optimizer)
        parameters = self._parameters()
        norm = whole(nn.utils.get_total_norm(p.grad for p in parameters if p.grad is not None))
        if self.clip:
            nn.utils.clip_grads_with_norm_(parameters, self.clip, norm)
        finite, spike = norm.isfinite() & loss.isfinite(), self._is_spike(loss)
        found_inf = (~finite | spike if self.skip_spikes else ~finite).float()
        step_unless(self.optimizer, found_inf)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.skipped = self.skipped + found_inf
        self.skipped_in_a_row = (self.skipped_in_a_row + 1) * found_inf
        self.spikes = self.spikes + spike
        self.losses = torch.where(found_inf.bool(), self.losses, torch.cat((self.losses[1:], loss.view(1))))
        return norm

    def _is_spike(self, loss: Tensor) -> Tensor:
        """Whether a loss lies far above the last ones, of which there are enough."""
        there = ~self.losses.isnan()
        count, losses = there.sum(), self.losses.nan_to_num()
        mean = losses.sum() / count
        deviation = (((losses - mean) * there).square().sum() / count).sqrt()
        return (count >= ENOUGH) & loss.isfinite() & (loss > mean + FAR * deviation)

    def check(self) -> Counts:
        """What was counted so far; reads the device.

        Raises:
            RunError: `PATIENCE` updates or more were skipped in a row.
        """
        in_a_row, skipped, spikes = torch.stack((self.skipped_in_a_row, self.skipped, self.spikes)).int().tolist()
        if in_a_row >= PATIENCE:
            what = f"a loss or gradient that is not finite{', or a spike,' if self.skip_spikes else ''}"
            raise RunError(
                f"training: the last {in_a_row} updates had {what} and were skipped; lower optimizer.lr, or set "
                "precision=fp32"
            )
        return Counts(skipped, spikes)

    def state(self) -> dict[str, Any]:
        """What a resumed guard goes on from, as plain data; reads the device."""
        return {
            "skipped": int(self.skipped.item()),
            "skipped_in_a_row": int(self.skipped_in_a_row.item()),
            "spikes": int(self.spikes.item()),
            "losses": [loss for loss in self.losses.tolist() if not math.isnan(loss)],
            "scaler": self.scaler.state_dict(),
        }

    def restore(
        self, skipped: int, skipped_in_a_row: int, spikes: int, losses: Sequence[float], scaler: Mapping[str, float]
    ) -> None:
        """Go on from a `state`; that of a scaler is of no use to a precision without one, and the other way round."""
        self.skipped.fill_(skipped)
        self.skipped_in_a_row.fill_(skipped_in_a_row)
        self.spikes.fill_(spikes)
        if last := losses[-WINDOW:]:
            self.losses[-len(last) :] = torch.tensor(last)
        if scaler:
            self.scaler.load_state_dict(dict(scaler))

    def _parameters(self) -> list[nn.Parameter]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]


def step_unless(optimizer: Optimizer, found_inf: Tensor) -> None:
    """Step where `found_inf` is 0; where it is 1 leave parameters and optimizer state as they are.

    Optimizers that say so (PyTorch's fused ones) take `found_inf` into their kernel, by the protocol of GradScaler. For
    others all tensors are copied before and put back; step counts that live on the host go on.
    """
    if getattr(optimizer, "_step_supports_amp_scaling", False):
        optimizer.grad_scale, optimizer.found_inf = None, found_inf  # type: ignore[attr-defined]
        optimizer.step()
        return
    before = {key: tensor.detach().clone() for key, tensor in _tensors(optimizer)}
    optimizer.step()
    for key, tensor in _tensors(optimizer):
        if tensor.device == found_inf.device:
            tensor.copy_(torch.where(found_inf.bool(), before.get(key, torch.zeros_like(tensor)), tensor))


def _tensors(optimizer: Optimizer) -> Iterator[tuple[tuple[int, str], Tensor]]:
    """Each parameter's data and state tensors, keyed by the parameter's place and the state's name."""
    parameters = chain.from_iterable(group["params"] for group in optimizer.param_groups)
    for index, parameter in enumerate(parameters):
        yield (index, ""), parameter.data
        for name, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                yield (index, name), value
