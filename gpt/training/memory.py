"""Fitting an update into a device's memory: in how many parts, micro-steps, it has to be computed."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

from gpt.config import RunError, UserError
from gpt.data.batches import Batches
from gpt.files import nearby
from gpt.training.update import Update

Accumulate = int | Literal["auto"]

MOMENTS = 2
"""Tensors that an optimizer keeps for each parameter: AdamW two, Muon of matrices one."""

CPU_IS_FULL = ("DefaultCPUAllocator", "could not create a ")
"""PyTorch has no error of its own for a CPU: these are its allocator's words, and oneDNN's."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error tells of a device, or a host, without memory."""
    on_host = isinstance(error, RuntimeError) and any(words in str(error) for words in CPU_IS_FULL)
    return on_host or isinstance(error, torch.OutOfMemoryError | MemoryError)


def fitting(update: Update, batches: Batches, wanted: Accumulate, found: int | None = None) -> int:
    """In how many micro-steps an update is computed: as many as are wanted, or of those that fit the fewest.

    Forward and backward of a micro-batch are tried on the device, beside gradients and the room that the optimizer will
    take.

    Args:
        update: before its first.
        batches: the training data.
        wanted: `auto`, or a number, which has to fit.
        found: what `auto` found before, where a run goes on.

    Raises:
        UserError: a process's sequences cannot be cut into so many parts.
        RunError: it does not fit; with the number that does.
    """
    possible = choices(update, batches)
    if wanted != "auto" and wanted not in possible:
        share = batches.batch_size // update.spread.processes.size
        raise UserError(
            f"accumulate: {share} sequences of a process cannot be cut into {wanted} parts; take "
            f"{', '.join(map(str, possible))}, or auto"
        )
    least = wanted if wanted != "auto" else found if found in possible else 1
    for number in (n for n in possible if n >= least):
        if fits(update, batches, number):
            if wanted in ("auto", number):
                return number
            raise RunError(too_much(update, batches, int(wanted), f"accumulate={number} fits"))
    raise RunError(too_much(update, batches, least, "one at a time neither; take a smaller model or model.context"))


def choices(update: Update, batches: Batches) -> list[int]:
    """The numbers of micro-steps that an update can be cut into.

    Raises:
        UserError: its sequences cannot be shared out evenly over the processes.
    """
    processes = update.spread.processes.size
    if batches.batch_size % processes:
        divisors = ", ".join(str(n) for n in range(1, batches.batch_size + 1) if batches.batch_size % n == 0)
        raise UserError(
            f"batch_size: {batches.batch_size} sequences cannot be shared out evenly over {processes} processes; start "
            f"{divisors}, or take a multiple of {processes}"
        )
    sequences = batches.batch_size // processes
    return [number for number in range(1, sequences + 1) if sequences % number == 0]


def fits(update: Update, batches: Batches, accumulate: int) -> bool:
    """Whether a micro-step of an update in so many has room; in all processes, if there are several."""
    processes, failed = update.spread.processes, False
    try:
        reserved = [torch.empty_like(p) for p in update.model.parameters() for _ in range(MOMENTS)]
        update.try_memory(update.spread.micro_batches(batches, 0, accumulate)[0])
        del reserved
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        failed = True
    update.guard.optimizer.zero_grad(set_to_none=True)
    if failed:
        gc.collect()
        if processes.device.type == "cuda":
            torch.cuda.empty_cache()
    return not processes.largest(failed)[0]


def too_much(update: Update, batches: Batches, accumulate: int, way_out: str) -> str:
    """The line for an update that does not fit in so many micro-steps."""
    processes = update.spread.processes
    rows = batches.batch_size // processes.size // accumulate
    return f"training: out of memory on {processes.device} with {rows} x {batches.context} tokens at once; {way_out}"


@contextmanager
def memory_told(update: Update, batches: Batches, accumulate: int, folder: Path) -> Iterator[None]:
    """Have it told in one line where the device's memory does not suffice for an update.

    Args:
        update: what is computed.
        batches: of which data.
        accumulate: in how many micro-steps.
        folder: the run's.

    Raises:
        RunError: it does not.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        more = next((n for n in choices(update, batches) if n > accumulate), None)
        way_on = f"go on with resume={nearby(folder)}" + (f" accumulate={more}" if more else ", on a larger device")
        raise RunError(too_much(update, batches, accumulate, way_on)) from None
