"""Muon (Jordan et al. 2024) for the blocks' matrices, AdamW for all other parameters.

With momentum buffer B and gradient G:  B <- μB + (1 - μ)G,  U = orthogonalize((1 - μ)G + μB),
W <- (1 - ηλ)W - η √max(1, rows/columns) U.  Orthogonalizing takes every singular value near to 1 by Newton-Schulz steps
X <- aX + (bXXᵀ + c(XXᵀ)²)X from X = G/‖G‖. It is the same as PyTorch's own `torch.optim.Muon`, but for all matrices of
one shape at a time, and it skips an update that is not finite without the host having to know.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, optim
from torch.distributed.tensor import DTensor, Shard

from gpt.device import has_native_bf16
from gpt.model.gpt import GPT
from gpt.training.optimizer import OptimizerConfig, parameter_groups
from gpt.training.optimizer.adamw import FUSED
from gpt.training.parallel import as_shared, local

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c of the Newton-Schulz step: the steepest at 0 that stays around 1 (Jordan et al. 2024)."""

STEPS = 5
"""Newton-Schulz steps; singular values between 0.7 and 1.2 come of them, which is near enough."""

EPS = 1e-7
"""Least norm that a gradient is divided by."""


class MuonConfig(OptimizerConfig):
    """Muon for the matrices inside the blocks; AdamW for embeddings, gains and biases."""

    name: Literal["muon"] = "muon"
    lr: float = Field(default=6e-3, gt=0, le=1000)
    """Peak learning rate of the matrices."""
    momentum: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the gradient's running mean, for matrices."""
    weight_decay: float = Field(default=0.0, ge=0, le=1000)
    """Each update shrinks matrices by this times their learning rate."""
    adamw_lr: float = Field(default=4.5e-3, gt=0, le=1000)
    """Peak learning rate of all others."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the gradient's running mean, for all others."""
    beta2: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the squared gradient's running mean, for all others."""
    eps: float = Field(default=1e-8, gt=0)
    """Added to the root of the squared gradient's mean, for all others."""

    def build(self, model: GPT) -> optim.Optimizer:
        """One optimizer over the three groups; of those that are frozen there is none."""
        groups = parameter_groups(model)
        matrices = {"name": "matrices", "params": list(groups.pop("matrices").items()), "initial_lr": self.lr}
        others = [
            {"name": name, "params": list(parameters.items()), "initial_lr": self.adamw_lr}
            for name, parameters in groups.items()
            if parameters
        ]
        fused = next(model.parameters()).device.type in FUSED
        adamw = optim.AdamW(
            others or [{"params": []}],
            lr=self.adamw_lr,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            weight_decay=0.0,
            fused=fused,
        )
        if not matrices["params"]:
            return adamw
        return Muon(matrices, adamw, self.lr, self.momentum, self.weight_decay)


class Muon(optim.Optimizer):
    """Muon over one group of matrices, and the AdamW of the other groups: to the outside one optimizer.

    Args:
        matrices: a parameter group, all of whose parameters have two dimensions.
        adamw: the optimizer of the other groups.
        lr: learning rate of the matrices.
        momentum: μ in [0, 1).
        weight_decay: λ.
    """

    def __init__(
        self, matrices: dict[str, Any], adamw: optim.AdamW, lr: float, momentum: float, weight_decay: float
    ) -> None:
        super().__init__([matrices], {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.adamw = adamw
        self._share()
        self._step_supports_amp_scaling = bool(adamw.defaults["fused"])
        self.grad_scale: Tensor | None = None
        self.found_inf: Tensor | None = None

    def _share(self) -> None:
        """Have the groups and the state of both in one list and one mapping."""
        self.adamw.param_groups = [group for group in self.adamw.param_groups if group["params"]]
        self.param_groups = [self.param_groups[0], *self.adamw.param_groups]
        self.state.update(self.adamw.state)
        self.adamw.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As any optimizer's."""
        super().load_state_dict(state_dict)
        self.adamw.param_groups = self.param_groups[1:]
        self.adamw.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update all parameters that have a gradient; where `found_inf` is 1 all stay as they are."""
        loss = closure() if closure else None
        if self._step_supports_amp_scaling:
            self.adamw.grad_scale, self.adamw.found_inf = self.grad_scale, self.found_inf  # type: ignore[attr-defined]
        self.adamw.step()
        shapes: dict[tuple[torch.Size, torch.dtype], list[Tensor]] = {}
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is not None:
                shapes.setdefault((parameter.shape, parameter.dtype), []).append(parameter)
        for parameters in shapes.values():
            self._update(parameters)
        return loss

    def _update(self, parameters: list[Tensor]) -> None:
        """Update matrices of one shape."""
        group = self.param_groups[0]
        lr, momentum = group["lr"], group["momentum"]
        gradients = torch.stack([local(p.grad) for p in parameters if p.grad is not None])  # (matrices, rows, columns)
        keep = torch.ones((), device=gradients.device)
        if self.found_inf is not None:
            keep = 1.0 - self.found_inf
            gradients = torch.where(keep.bool(), gradients, torch.zeros_like(gradients))
        buffers = [local(self._buffer(parameter)) for parameter in parameters]
        means = torch.stack(buffers).lerp_(gradients, keep * (1.0 - momentum))
        torch._foreach_copy_(buffers, list(means.unbind()))
        updates = orthogonalize_shared(gradients.lerp_(means, momentum), parameters[0])
        rows, columns = parameters[0].shape
        updates = updates.to(gradients.dtype) * (keep * (lr * max(1.0, rows / columns) ** 0.5))
        weights = [local(parameter.detach()) for parameter in parameters]
        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1.0 - keep * (lr * group["weight_decay"]))
        torch._foreach_sub_(weights, list(updates.unbind()))

    def _buffer(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state["momentum_buffer"]


def orthogonalize_shared(matrices: Tensor, like: Tensor) -> Tensor:
    """Of matrices that are shared out among processes by their rows, as `like` is, this process's rows of the result.

    Args:
        matrices: (matrices, rows, columns), of this process; all of it where `like` is not shared out.
        like: one of the parameters.
    """
    if not isinstance(like, DTensor):
        return orthogonalize(matrices)
    rows, columns = like.shape
    shape, stride = torch.Size((len(matrices), rows, columns)), (rows * columns, columns, 1)
    parts = DTensor.from_local(matrices, like.device_mesh, [Shard(1)], shape=shape, stride=stride)
    return local(as_shared(orthogonalize(parts.full_tensor()), parts))


def orthogonalize(matrices: Tensor) -> Tensor:
    """The matrices with their singular values near to 1, in bf16 where the device multiplies it natively.

    Args:
        matrices: (matrices, rows, columns).
    """
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16() if has_native_bf16(matrices.device) else matrices
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=EPS)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
