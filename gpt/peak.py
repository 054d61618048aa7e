"""The best that a device does in matrix products, measured: what its work is compared with.

model FLOPs utilisation = tokens/s · FLOPs of a token / FLOP/s of the best product   (Chowdhery et al. 2022)
"""

import time
from collections.abc import Callable
from functools import cache

import torch

TRIES = 5
"""Of each kind of work, the best counts."""

SIZES = (512, 1024, 2048, 4096, 8192)
"""Rows and columns of the matrices that `peak_flops` tries."""

LONG = 0.005
"""Seconds of a product from which on no larger one is tried."""


@cache
def peak_flops(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of the best product, larger ones tried until one takes long; measured once, in a part of a second."""
    found = [0.0]
    for size in SIZES:
        found.append(matrix_product(device, dtype, size))
        if 2 * size**3 / found[-1] > LONG:
            break
    return max(found)


def matrix_product(device: torch.device, dtype: torch.dtype, size: int) -> float:
    """FLOP/s of a product of square matrices, 2 size³ operations, the second one transposed or not."""
    draw = torch.Generator(device).manual_seed(0)  # of its own: what a training draws is not touched
    a, b = (torch.randn(size, size, device=device, generator=draw).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    seconds = min(best(lambda: torch.mm(a, b, out=out), device), best(lambda: torch.mm(a, b.T, out=out), device))
    return 2 * size**3 / seconds


def best(work: Callable[[], object], device: torch.device) -> float:
    """The seconds of the fastest of some calls, after one that does not count."""
    times = []
    for _ in range(1 + TRIES):
        synchronize(device)
        start = time.perf_counter()
        work()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
