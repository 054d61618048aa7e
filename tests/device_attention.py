"""Every attention on one device against its own slow form, forward and backward: `python tests/device_attention.py`.

CI runs it on the CPU, in small sizes; with device=cuda FlexAttention computes windows, columns and documents. For each
attention, in fp32 and bf16, plain and in documents, and for those that have scores once more with ALiBi, which
FlexAttention is not given, it prints by what it is computed, how far outputs and gradients are from the weights written
out in fp32, and the time beside that of causal SDPA on a long text.
"""

import sys
import time
from itertools import product
from statistics import median

import torch
from torch import Tensor

from gpt.config import UserError, variant_names
from gpt.device import choose_device, prepare_device
from gpt.model.attention import Attention, Place
from gpt.model.attention._blocks import Bias
from gpt.model.config import GPTConfig
from gpt.model.mask import Where
from gpt.peak import synchronize

TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 3e-2}
"""Of outputs and gradients, relative to the largest; tf32 is on for cuda."""

SIZES = {"cpu": (333, 2048), "cuda": (1500, 32768)}
"""Tokens of a comparison, and of a timing."""

HEADS, KV_HEADS, WIDTH = 4, 2, 64
WINDOW = {"window": 256, "sinks": 4}
SETTINGS = {"sliding_window": WINDOW, "sparse": {**WINDOW, "stride": 256}}


def main() -> None:
    """Each attention; a comparison that fails ends the script with code 1, when all have been made."""
    name = dict(argument.split("=") for argument in sys.argv[1:]).get("device", "auto")
    device = choose_device(name)
    prepare_device(device)
    short, long = SIZES.get(device.type, SIZES["cpu"])
    failed = False
    for dtype, tolerance in TOLERANCE.items():
        beside = seconds(build("sdpa")[0], device, dtype, long)
        for variant, position in product(variant_names("gpt.model.attention"), ("none", "alibi")):
            try:
                attention, bias = build(variant, position)
            except UserError:  # it has no scores to bias
                continue
            errors = {
                kind: error(attention, device, dtype, where, bias) for kind, where in places(short, device).items()
            }
            failed |= any(not found <= tolerance for found in errors.values())  # a NaN is no pass
            told = ", ".join(f"{kind} within {found:.1e}" for kind, found in errors.items())
            how = f"{str(dtype).removeprefix('torch.')} {variant}{' with alibi' if bias else ''}"
            timed = bias is None and variant != "reference"
            speed = f"; {times(attention, device, dtype, long, beside)}" if timed else ""
            print(f"{device} {how} ({attention.describe(device, dtype)}): {told}{speed}", flush=True)
    sys.exit(failed)


def build(variant: str, position: str = "none") -> tuple[Attention, Bias | None]:
    """One layer's attention, of which only `attend` is used, which has no parameters, and the position's bias.

    Raises:
        UserError: they do not go together.
    """
    settings = {"name": variant, **SETTINGS.get(variant, {})}
    sizes = {"n_head": HEADS, "n_kv_head": KV_HEADS, "head_dim": WIDTH, "d_model": HEADS * WIDTH}
    config = GPTConfig(**sizes, context=1024, position={"name": position}, attention=settings)
    return config.attention.build(config, 0), config.position.build(config).bias


def places(length: int, device: torch.device) -> dict[str, Where | None]:
    """Where tokens are: a text, and rows of documents that cross blocks, one of them padded on the left."""
    position, document = torch.full((2, length), -1), torch.zeros(2, length, dtype=torch.int64)
    third = length // 3
    position[0, third:] = torch.arange(length - third)
    lengths = [1, third, 3, length - third - 4]
    position[1] = torch.cat([torch.arange(n) for n in lengths])
    document[1] = torch.arange(4).repeat_interleave(torch.tensor(lengths))
    return {"plain": None, "documents": Where(position.to(device), document.to(device))}


def error(
    attention: Attention, device: torch.device, dtype: torch.dtype, where: Where | None, bias: Bias | None
) -> float:
    """How far outputs and gradients are from those of the weights written out in fp32, relative to the largest."""
    length = SIZES.get(device.type, SIZES["cpu"])[0] if where is None else where.position.size(1)
    inputs = draw(device, dtype, length, rows=2)
    position = Where.contiguous(0, length, device).position if where is None else where.position
    place = Place(where, position, None, bias)
    there = (position >= 0)[:, None, :, None].expand(2, HEADS, -1, WIDTH)
    upstream = torch.randn(2, HEADS, length, WIDTH, device=device) * there
    fast = attention.attend(*inputs, place, None)
    exact = [tensor.detach().float().requires_grad_() for tensor in inputs]
    slow = attention.weights(*exact[:2], Place(where, position, None, bias)) @ attention.repeat(exact[2])
    ours = [fast * there, *torch.autograd.grad(fast, inputs, upstream.to(dtype))]
    truth = [slow * there, *torch.autograd.grad(slow, exact, upstream)]
    return max(((a.float() - b).abs().max() / b.abs().max()).item() for a, b in zip(ours, truth, strict=True))


def draw(device: torch.device, dtype: torch.dtype, length: int, rows: int) -> list[Tensor]:
    """Query, key and value."""
    torch.manual_seed(0)
    heads = (HEADS, KV_HEADS, KV_HEADS)
    return [torch.randn(rows, n, length, WIDTH, device=device, dtype=dtype, requires_grad=True) for n in heads]


def times(attention: Attention, device: torch.device, dtype: torch.dtype, length: int, beside: float) -> str:
    """The time of a forward and backward, and what part of SDPA's it is."""
    took = seconds(attention, device, dtype, length)
    return f"{length:,} tokens in {1000 * took:.1f} ms, {took / beside:.2f} of sdpa's"


def seconds(attention: Attention, device: torch.device, dtype: torch.dtype, length: int) -> float:
    """The median of five forwards and backwards of one text."""
    inputs = draw(device, dtype, length, rows=1)
    position = Where.contiguous(0, length, device).position
    taken = []
    for _ in range(7):
        synchronize(device)
        start = time.perf_counter()
        attention.attend(*inputs, Place(None, position, None, None), None).sum().backward()
        synchronize(device)
        taken.append(time.perf_counter() - start)
    return median(taken[2:])


if __name__ == "__main__":
    main()
