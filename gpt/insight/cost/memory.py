"""What memory some work takes at its peak, and what is free.

cuda    what PyTorch allocates, at most, above what it held before
cpu     on Linux: the resident set's high-water mark, VmHWM, above the resident set before, VmRSS (proc(5))
"""

import ctypes
from collections.abc import Callable
from pathlib import Path

import torch

PROC = Path("/proc")

KIB = 1024
"""Bytes of the unit that /proc counts in."""


def peak_bytes(work: Callable[[], object], device: torch.device) -> int | None:
    """The bytes that `work` takes beyond what is held before; None where the system does not tell.

    Work that was done once before is measured more exactly: what is loaded at the first call is not its own.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    return _peak_resident(work) if device.type == "cpu" else None


def _peak_resident(work: Callable[[], object]) -> int | None:
    try:
        _give_back()
        before = _kibibytes(PROC / "self/status", "VmRSS")
        (PROC / "self/clear_refs").write_text("5", encoding="ascii")  # the high-water mark falls to what is resident
        work()
        return max(0, _kibibytes(PROC / "self/status", "VmHWM") - before) * KIB
    except OSError:
        return None


def _give_back() -> None:
    """Have the C library give freed memory back to the system: used again, it would not show as taken."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def free_bytes(device: torch.device) -> int | None:
    """The bytes that can still be taken; None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return _kibibytes(PROC / "meminfo", "MemAvailable") * KIB
    except OSError:
        return None


def _kibibytes(path: Path, field: str) -> int:
    """The number in a line such as `VmRSS:     1234 kB`.

    Raises:
        OSError: there is no such file or line.
    """
    for line in path.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0])
    raise OSError(f"{path} has no {field}")
