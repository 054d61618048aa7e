"""A model's matrices laid out for products with few rows, which is what a step of decoding is made of.

    fp32, bf16   packed by oneDNN once, so that all cores read each weight once, in order
    int8         w ≈ scale · q, a scale for each row of W, q = round(w / scale) in -127..127: a quarter of fp32 to read
    by rows      y_i = Σ_k x_k · w_ik, written out for a compiler that makes one loop of it and what stands around it

All are kernels of PyTorch's own. The model that was given keeps its weights, for prompts and for all else.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Literal

import torch
from torch import Tensor, nn

from gpt.config import UserError
from gpt.model.gpt import GPT

Quantize = Literal["int8"]

Layout = Callable[[Tensor, Tensor | None], nn.Module]
"""(out, in) weights and their bias, if any -> what takes the place of their linear layer."""


class Packed(nn.Module):
    """y = W x + b by oneDNN, W packed as it likes it best."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, 1)
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


class Int8(nn.Module):
    """y = scale · (Q x) + b, x in bf16."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        scale = weight.float().abs().amax(dim=1).clamp(min=1e-12) / 127
        self.register_buffer("quantized", (weight.float() / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale.bfloat16())
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        rows = x.reshape(-1, x.size(-1)).bfloat16()
        y = torch.ops.aten._weight_int8pack_mm(rows, self.quantized, self.scale).to(x.dtype)
        return (y if self.bias is None else y + self.bias).view(*x.shape[:-1], -1)


class Rows(nn.Module):
    """y = W x + b as a sum over each row of W; only where it is compiled is that fast."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        y = (x.unsqueeze(-2) * self.weight).sum(dim=-1, dtype=torch.float32)
        return (y if self.bias is None else y + self.bias).to(x.dtype)


def int8(weight: Tensor, bias: Tensor | None) -> nn.Module:
    """`Int8` where the kernel can, which reads 16 numbers at a time and does not look where a row ends."""
    return (Int8 if weight.size(1) % 16 == 0 else linear)(weight, bias)


def linear(weight: Tensor, bias: Tensor | None) -> nn.Module:
    """PyTorch's own: y = W x + b."""
    layer = nn.Linear(weight.size(1), weight.size(0), bias is not None, device="meta")
    layer.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return layer


def prepared(model: GPT, layout: Layout) -> GPT:
    """A model like `model`, each matrix in a layout, its head too; all other parameters are shared.

    Dropout is left out: a model that is prepared only ever decodes.
    """
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    copy = deepcopy(model, shared)
    if copy.head is None:
        copy.head = linear(copy.embedding.weight.detach(), None)
    for parent in list(copy.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, layout(child.weight.detach(), child.bias))
            elif isinstance(child, nn.Dropout):
                setattr(parent, name, nn.Identity())
    return copy.eval()


def check_quantize(quantize: Quantize | None, device: torch.device) -> None:
    """Refuse what PyTorch has no kernel for.

    Raises:
        UserError: int8 there.
    """
    if quantize and device.type != "cpu":
        raise UserError(f"quantize: int8 needs the cpu, this is {device.type}; take null, or device=cpu")
