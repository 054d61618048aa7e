"""Dropout (Srivastava et al. 2014):  y = x · m / (1 - p),  m being 0 with probability p, else 1.

On a CPU PyTorch's own draws one number after the other, and that takes longer than all else in an update of a small
model. There NumPy draws, four elements from each number, beginning from PyTorch's generator, so that
`torch.manual_seed` decides of all.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Whole numbers of as many bytes: NumPy lacks bf16."""


class Dropout(nn.Dropout):
    """Elements of a tensor, each dropped with probability p in training."""

    def forward(self, x: Tensor) -> Tensor:
        """(…) -> the same."""
        return dropout(x, self.p, self.training)


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Each element is 0 with probability p, else divided by 1 - p.

    Args:
        x: of any shape.
        p: at least 0, below 1.
        training: else x is returned as it is.
    """
    if not training or not p:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    kept: Tensor = draw(torch.randint(1 << 62, (1,)), x.numel(), p, x.dtype)
    return x * kept.view(x.shape) / (1 - p)


@torch.library.custom_op("gpt::draw", mutates_args=())
def draw(seed: Tensor, count: int, p: float, dtype: torch.dtype) -> Tensor:
    """The numbers m, (count,), in the type asked for, as which they are multiplied fastest; p is rounded to 16 bits.

    An operator of its own, which a compiler calls as it is.
    """
    generator = np.random.Generator(np.random.SFC64(int(seed)))
    numbers = generator.integers(1 << 64, size=math.ceil(count / 4), dtype=np.uint64)
    kept = numbers.view(np.uint16)[:count] >= round(p * (1 << 16))
    one = torch.ones(1, dtype=dtype).view(BITS[dtype.itemsize]).numpy()
    return torch.from_numpy(kept * one).view(dtype)


@draw.register_fake
def _(seed: Tensor, count: int, _: float, dtype: torch.dtype) -> Tensor:
    return seed.new_empty(count, dtype=dtype)
