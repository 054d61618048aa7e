"""The update's guard: clips gradients, and skips an update whose loss or gradient is not finite.

The decision stays on the device: nothing is read back, so the host runs ahead of the device. The counts are tensors,
to be read when metrics are.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gpt.config import RunError

PATIENCE = 25
"""Updates that may be skipped in a row before the run is ended."""


class Guard:
    """Around an optimizer: scale, clip, skip, step.

    Args:
        optimizer: steps over all its groups' parameters.
        clip: largest allowed norm of the whole gradient; 0 allows any.
        scaler: fp16's loss scaler; a disabled one changes nothing.
    """

    def __init__(self, optimizer: Optimizer, clip: float, scaler: torch.amp.GradScaler) -> None:
        self.optimizer = optimizer
        self.clip = clip
        self.scaler = scaler
        device = self._parameters()[0].device
        self.skipped = torch.zeros((), device=device)
        self.skipped_in_a_row = torch.zeros((), device=device)

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
        norm = nn.utils.get_total_norm(p.grad for p in parameters if p.grad is not None)
        if self.clip:
            nn.utils.clip_grads_with_norm_(parameters, self.clip, norm)
        found_inf = (~(norm.isfinite() & loss.isfinite())).float()
        step_unless(self.optimizer, found_inf)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.skipped = self.skipped + found_inf
        self.skipped_in_a_row = (self.skipped_in_a_row + 1) * found_inf
        return norm

    def check(self) -> int:
        """How many updates were skipped so far; reads the device.

        Raises:
            RunError: `PATIENCE` or more in a row.
        """
        if self.skipped_in_a_row.item() >= PATIENCE:
            raise RunError(
                f"training: the last {int(self.skipped_in_a_row.item())} updates had a loss or gradient that is not "
                "finite and were skipped; lower optimizer.lr, or set precision=fp32"
            )
        return int(self.skipped.item())

    def state(self) -> dict[str, Any]:
        """What a resumed guard goes on from, as plain data; reads the device."""
        return {
            "skipped": int(self.skipped.item()),
            "skipped_in_a_row": int(self.skipped_in_a_row.item()),
            "scaler": self.scaler.state_dict(),
        }

    def restore(self, skipped: int, skipped_in_a_row: int, scaler: dict[str, float]) -> None:
        """Go on from a `state`; that of a scaler is of no use to a precision without one, and the other way round."""
        self.skipped.fill_(skipped)
        self.skipped_in_a_row.fill_(skipped_in_a_row)
        if scaler:
            self.scaler.load_state_dict(scaler)

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
