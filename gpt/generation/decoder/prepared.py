"""A model's matrices laid out for products with few rows, which is what a step of decoding is made of.

    fp32, bf16   packed by oneDNN once, so that all cores read each weight once, in order
    int8         w ≈ scale · q, a scale for each row of W, q = round(w / scale) in -127..127: a quarter of fp32 to read
    tiles        y_i = Σ_k x_k · w_ik, written out for a compiler that makes one program of it and what stands around it

All are kernels of PyTorch's own. The model that was given keeps its weights, for prompts and for all else.
"""

import math
import mmap
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import reduce
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.config import UserError
from gpt.model.gpt import GPT

Quantize = Literal["int8"]

LARGE_PAGE = 1 << 21
"""Bytes."""

WIDE = {torch.float32: 16}
"""Rows of a tile side by side, where they are not 32."""

DEEP = {torch.int8: 4}
"""Neighbours in a row of a tile whose products are added first, where they are not 1."""

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
        y: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, self.packed, self.bias, "none", [], "")
        return y


class Int8(nn.Module):
    """y = scale · (Q x) + b, x in bf16."""

    quantized: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        quantized, scale = quantize_rows(weight)
        self.register_buffer("quantized", in_large_pages(quantized))
        self.register_buffer("scale", scale.bfloat16())
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        y = torch._weight_int8pack_mm(x.flatten(0, -2).bfloat16(), self.quantized, self.scale).to(x.dtype)
        return (y if self.bias is None else y + self.bias).unflatten(0, x.shape[:-1])


class Tiles(nn.Module):
    """y = scale · (Q x) + b in fp32, rows of Q side by side; Q is W where nothing scales it.

    Only where it is compiled is that fast. As many rows lie side by side as let memory be read line by line, in order.
    Int8 is read 16 numbers at a time, and a sum waits for the one before: so several products are added before the sum
    takes them.
    """

    tiles: Tensor
    scale: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, scale: Tensor | None = None) -> None:
        super().__init__()
        self.out, columns = weight.shape
        wide, deep = WIDE.get(weight.dtype, 32), math.gcd(columns, DEEP.get(weight.dtype, 1))
        padded = F.pad(weight, (0, 0, 0, -self.out % wide))
        tiles = padded.view(-1, wide, columns // deep, deep).permute(0, 2, 3, 1)  # (out / wide, in / deep, deep, wide)
        self.register_buffer("tiles", in_large_pages(tiles))
        self.register_buffer("scale", scale)
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        x32 = x.float()
        x32 = torch.as_strided(x32, x32.shape, x32.stride())  # else the compiler computes x anew for each tile
        neighbours = x32.unflatten(-1, self.tiles.shape[1:3]).unbind(-1)  # deep of (..., in / deep)
        products = [x_i[..., None, :, None] * tile for x_i, tile in zip(neighbours, self.tiles.unbind(2), strict=True)]
        y = reduce(torch.add, products).sum(dim=-2).flatten(-2)[..., : self.out]
        if self.scale is not None:
            y = y * self.scale
        return (y if self.bias is None else y + self.bias).to(x.dtype)


def in_large_pages(tensor: Tensor) -> Tensor:
    """A contiguous copy, in pages of 2 MiB where Linux has them: a step reads all weights, and looks up each page.

    PyTorch's own way, the variable THP_MEM_ALLOC_ENABLE, is for all of a process, and read before its first tensor.
    """
    if tensor.device.type != "cpu" or tensor.nbytes < LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return tensor.contiguous()
    pages = mmap.mmap(-1, tensor.nbytes + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without them
        pages.madvise(mmap.MADV_HUGEPAGE)
    whole = torch.frombuffer(pages, dtype=torch.uint8)
    start = -whole.data_ptr() % LARGE_PAGE
    copy = whole[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
    return copy.copy_(tensor)


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Q (out, in) int8 and its scales (out,) fp32, W ≈ scale · Q."""
    scale = weight.float().abs().amax(dim=1).clamp(min=1e-12) / 127
    return (weight.float() / scale[:, None]).round().to(torch.int8), scale


def int8(weight: Tensor, bias: Tensor | None) -> nn.Module:
    """`Int8` where the kernel can, which reads 16 numbers at a time and does not look where a row ends."""
    return (Int8 if weight.size(1) % 16 == 0 else linear)(weight, bias)


def int8_tiles(weight: Tensor, bias: Tensor | None) -> nn.Module:
    """The same numbers as `int8`, to be compiled for few rows."""
    quantized, scale = quantize_rows(weight)
    return Tiles(quantized, bias, scale)


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
