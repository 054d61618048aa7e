"""Where and how numbers are computed: device, precision, compilation. What `auto` chose comes with its reason."""

import math
import os
import platform
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import deterministic

from gpt.config import RunError, UserError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

PrecisionName = Literal["auto", "fp32", "bf16", "fp16"]
CompileMode = Literal["off", "auto", "on", "strict"]

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

REPAYS_AFTER = {"cuda": 120.0, "cpu": 150.0}
"""Seconds of eager steps from which on `compile=auto` compiles. It takes about half a minute the first time, and a few
seconds from PyTorch's cache; on a CPU it saves a fifth to a third of the time, on cuda more."""

FLAGS = ("avx2", "avx512_f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "neon", "bf16", "sve", "sve2")
"""Of the processor's, as PyTorch names them, those that speed depends on."""

TOLERANCE = 0.02
"""How far, relatively, the first compiled loss may be from the eager one; rounding moves it by less."""


class Precision(NamedTuple):
    """The type that matrix products are computed in; weights that are trained are fp32 always."""

    name: str
    reason: str
    device: torch.device

    def autocast(self) -> AbstractContextManager[None]:
        """The context in which a forward computes in this precision."""
        if self.name == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, DTYPES[self.name])

    def scaler(self) -> torch.amp.GradScaler:
        """Of losses, so that fp16 holds their gradients; for other precisions one that changes nothing."""
        return torch.amp.GradScaler(self.device.type, enabled=self.name == "fp16")


def choose_device(name: str, local_rank: int = 0, local_size: int = 1) -> torch.device:
    """`auto` takes cuda, else mps, else cpu; a name that torch knows, such as cuda:1, is taken as it is.

    Args:
        name: what is asked for.
        local_rank: the number of this process, of several on this machine: each takes a cuda device of its own.
        local_size: how many there are.

    Raises:
        UserError: no such device, or not on this machine; fewer than there are processes.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind, is_there in there.items() if is_there)
    kind, colon, index = name.partition(":")
    if kind not in there or (colon and not (kind == "cuda" and index.isdecimal())):
        raise UserError(f"device: {name!r} is none of auto, cuda, cuda:1, mps, cpu")
    if not there[kind] or (kind == "cuda" and int(index or 0) >= torch.cuda.device_count()):
        here = ", ".join(kind for kind, is_there in there.items() if is_there)
        raise UserError(f"device: {name} is not on this machine, which has {here}; take one of these, or auto")
    if local_size > 1 and kind != "cpu":
        if kind == "mps" or index:
            raise UserError(f"device: {local_size} processes cannot share {name}; take device=cpu, or one process")
        if torch.cuda.device_count() < local_size:
            raise UserError(
                f"device: {local_size} processes on this machine, which has {torch.cuda.device_count()} cuda devices; "
                "start fewer with --nproc_per_node, or take device=cpu"
            )
        index = str(local_rank)
    return torch.device(kind, int(index or 0)) if kind == "cuda" else torch.device(kind)


def choose_precision(name: PrecisionName, device: torch.device) -> Precision:
    """`auto` takes bf16 where the hardware has it, else fp16 on cuda, else fp32.

    Raises:
        UserError: a precision that the device lacks.
    """
    if name not in ("auto", *DTYPES):
        raise UserError(f"precision: {name!r} is none of auto, {', '.join(DTYPES)}")
    has_bf16 = has_native_bf16(device)
    if name == "auto":
        if has_bf16:
            return Precision("bf16", f"this {device.type} multiplies bf16 natively", device)
        if device.type == "cuda":
            return Precision("fp16", "this cuda device has no bf16; losses are scaled", device)
        return Precision("fp32", f"this {device.type} has no native bf16", device)
    if name == "fp16" and device.type != "cuda":
        raise UserError(f"precision: fp16 needs a cuda device, this is {device.type}; take bf16, fp32 or auto")
    if name == "bf16" and device.type == "cuda" and not has_bf16:
        raise UserError("precision: this cuda device has no bf16; take fp16, fp32 or auto")
    return Precision(name, "as set", device)


def has_native_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bf16 itself."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(torch.cpu.get_capabilities().get("avx512_bf16"))


def prepare_device(device: torch.device) -> None:
    """Settings of the process: TF32 on cuda, which costs no accuracy worth having; no denormals.

    On cpu algorithms are deterministic, so that a resumed run has the bits of one that was never stopped: compiled code
    would add up an embedding's gradient by threads in any order.
    """
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
        torch.cuda.set_device(device)
    # PyTorch would fill every new tensor with NaN, which takes time and only helps debugging.
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(device.type == "cpu", warn_only=True)
    torch.set_flush_denormal(True)


def check_memory(model: nn.Module, device: torch.device, parts: int = 1) -> None:
    """Refuse a model whose training cannot fit: 16 bytes a parameter, for weight, gradient and AdamW's two moments.

    4 of one that is frozen.

    Args:
        model: may be on meta.
        device: where it shall be trained.
        parts: devices that it is shared out among; processes on CPUs share one memory.

    Raises:
        UserError: that alone is more than the device's memory.
    """
    needed = sum((16 if parameter.requires_grad else 4) * parameter.numel() for parameter in model.parameters())
    if device.type == "cuda":
        needed, memory = needed // parts, torch.cuda.get_device_properties(device).total_memory
    else:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else needed
    if needed > memory:
        raise UserError(
            f"model: weights, gradients and optimizer take {needed / 1e9:,.1f} GB, this {device} has "
            f"{memory / 1e9:,.1f}; take fewer layers or a smaller model.d_model"
        )


def memory_taken(device: torch.device) -> dict[str, int]:
    """The most bytes so far, as the metric `memory`: on cuda PyTorch's there, else the process's; {}: not known."""
    if device.type == "cuda":
        return {"memory": torch.cuda.max_memory_allocated(device)}
    if resource is None:
        return {}
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"memory": most if sys.platform == "darwin" else most * 1024}


def describe_machine(device: torch.device) -> list[tuple[str, str]]:
    """The processor with what its speed depends on, what accelerator there is, and the versions, as label and text."""
    capabilities = torch.cpu.get_capabilities()
    flags = " ".join(flag for flag in FLAGS if capabilities.get(flag))
    name = capabilities.get("cpu_name") or platform.processor() or platform.machine()
    accelerator = f"{torch.cuda.get_device_name(device)}; " if device.type == "cuda" else ""
    return [
        ("machine", f"{accelerator}{name}, {os.cpu_count()} cores; {flags}".rstrip("; ")),
        ("torch", f"{torch.__version__}, threads: {torch.get_num_threads()}; Python {platform.python_version()}"),
    ]


def keep_compiled() -> None:
    """Have PyTorch keep compiled code in the user's cache folder, unless one is named.

    Its own default is a temporary folder, which many systems empty when they start.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tiny-gpt" / "compiled"
    with suppress(OSError, RuntimeError):  # no home, or none to write to: the temporary folder will do
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))


Forward = Callable[..., Tensor]
"""A model's forward: the model itself, or what compiling made of it."""


def compile_forward(
    model: nn.Module, mode: CompileMode, eager_seconds: float, probe: Callable[[Forward], float], random: bool
) -> tuple[Forward, str]:
    """The model's forward, compiled where `mode` asks for it and it works; and what to say of it.

    Args:
        model: called as it is where nothing is compiled.
        mode: off; auto compiles where `eager_seconds` repay it, which they never do on mps; on; strict.
        eager_seconds: what all that is to come would take without compiling.
        probe: the loss of one update by a forward, and its backward, to compare compiled with eager.
        random: the loss is random, by dropout, and the two draw differently: they are not compared.

    Raises:
        RunError: `strict`, and compiling failed or gave another loss.
    """
    if mode == "off":
        return model, "off"
    device = next(model.parameters()).device.type
    if mode == "auto" and eager_seconds < (least := REPAYS_AFTER.get(device, math.inf)):
        return model, f"off (auto: {f'only from {least:.0f} s on' if least < math.inf else f'not on {device}'})"
    keep_compiled()
    torch.compiler.reset()  # a sweep's earlier jobs count against PyTorch's limit of recompilations
    forward = torch.compile(model)
    problem = _problem(model, forward, probe, math.inf if random else TOLERANCE)
    if problem is None:
        return forward, "on"
    if mode == "strict":
        raise RunError(f"compile: strict, but compiling failed ({problem}); take compile=on or off")
    warnings.warn(f"compiling failed, going on without ({problem})", stacklevel=2)
    return model, "off (it failed)"


def _problem(model: nn.Module, forward: Forward, probe: Callable[[Forward], float], tolerance: float) -> str | None:
    """What is wrong with the compiled forward, None where nothing is; a missing C++ compiler shows itself here."""
    try:
        compiled = probe(forward)
    except Exception as error:
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    eager = probe(model)
    if abs(compiled - eager) <= tolerance * abs(eager):
        return None
    return f"its first loss is {compiled:.4f}, the eager one {eager:.4f}"
