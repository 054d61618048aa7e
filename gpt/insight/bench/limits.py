"""What the machine can do: its best matrix product and its memory's bandwidth; and the tokens/s that these allow.

    training   tokens/s <= matrix product in FLOP/s / FLOPs of a token
    decoding   steps/s  <= bandwidth in bytes/s / bytes that a step must read: weights, keys and values

A share above 1 is no error: weights that fit into the processor's cache are read faster than memory.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import torch

from gpt.device import DTYPES
from gpt.model.gpt import GPT
from gpt.peak import best, matrix_product


class Sizes(NamedTuple):
    """How large the work is that the machine is measured by: larger than any cache."""

    matrix: int
    """Rows and columns of a square matrix."""
    array: int
    """Bytes."""


SIZES = {"cpu": Sizes(2048, 1 << 28), "mps": Sizes(4096, 1 << 28), "cuda": Sizes(8192, 1 << 31)}


class Limits(NamedTuple):
    """Measured bests."""

    flops: dict[str, float]
    """FLOP/s of a matrix product, by precision."""
    bandwidth: float
    """Bytes/s."""

    def or_better(self, other: "Limits") -> "Limits":
        """The best of both: what else runs on a machine only ever makes it look slower."""
        flops = {precision: max(self.flops[precision], other.flops[precision]) for precision in self.flops}
        return Limits(flops, max(self.bandwidth, other.bandwidth))


Ceiling = Callable[[Limits], Mapping[str, float]]
"""The tokens/s that limits allow, by what the weights are held in: a precision, or int8."""


def measure_limits(device: torch.device, precisions: Iterable[str], sizes: Sizes | None = None) -> Limits:
    """Measure them, in a few seconds.

    Args:
        device: what is measured.
        precisions: of matrix products.
        sizes: None takes the device's.
    """
    matrix, array = sizes or SIZES[device.type]
    flops = {name: matrix_product(device, DTYPES[name], matrix) for name in precisions}
    return Limits(flops, memory_bandwidth(device, array))


def memory_bandwidth(device: torch.device, size: int) -> float:
    """Bytes/s of the best of: copying an array of `size` bytes, the triad a = b + 3 c (McCalpin 1995), a sum."""
    a, b, c = (torch.ones(size // 4, device=device) for _ in range(3))
    kinds = (
        (2, lambda: a.copy_(b)),
        (3, lambda: torch.add(b, c, alpha=3, out=a)),
        (1, lambda: b.sum()),
    )
    return max(arrays * size / best(work, device) for arrays, work in kinds)


def training_ceiling(model: GPT, limits: Limits) -> dict[str, float]:
    """Tokens/s that the matrix product allows in training, by precision."""
    return {precision: flops / model.flops_per_token() for precision, flops in limits.flops.items()}


def decoding_ceiling(model: GPT, rows: int, prompt: int, new: int, limits: Limits) -> dict[str, float]:
    """Tokens/s that the bandwidth allows in decoding `rows` texts of `new` tokens after `prompt`, by precision.

    With int8 weights, keys and values are numbers of two bytes.
    """
    numbers, weights = (numbers_read(model, texts, prompt, new) for texts in (rows, 0))
    read = {name: numbers * dtype.itemsize for name, dtype in DTYPES.items()} | {"int8": 2 * numbers - weights}
    return {name: rows * limits.bandwidth / nbytes for name, nbytes in read.items()}


def numbers_read(model: GPT, rows: int, prompt: int, new: int) -> float:
    """Weights, keys and values that one step of decoding must read, on average over a text.

    Of tables that are only looked up a row is read, which is left out. Step i of `new` sees `prompt` + i tokens, the
    first one being 0.
    """
    c = model.config
    tables = [model.position] if model.head is None else [model.position, model.embedding]
    weights = model.count_parameters() - sum(p.numel() for table in tables for p in table.parameters())
    seen = prompt + (new - 1) / 2
    return weights + rows * seen * 2 * c.n_layer * c.kv_heads * c.head_size
