"""The processes of one run, as torchrun starts them: which one this is, and what they agree on.

A process that is alone agrees with itself: nothing of this costs it anything.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from gpt.config import RunError, UserError
from gpt.device import choose_device, prepare_device
from gpt.launch import is_launched, local_rank, local_size

T = TypeVar("T")


class HasDevice(Protocol):
    """Settings that say where a script computes."""

    @property
    def device(self) -> str:
        """As `choose_device` takes it."""


S = TypeVar("S", bound=HasDevice)
R = TypeVar("R")

PATIENCE = timedelta(days=7)
"""For what one process does while the others wait, such as preparing tokens; one that ends is noticed at once."""

LOST = ("closed by peer", "reset by peer", "Broken pipe", "connectFullMesh", "Connection refused", "Socket Timeout")
"""What gloo, NCCL and the store say of a process that can no longer be reached."""


class Processes:
    """The processes of a run; here one that is alone."""

    rank = 0
    size = 1

    def __init__(self, device: torch.device) -> None:
        self.device = device
        """This process's own."""

    @property
    def leads(self) -> bool:
        """Whether this is the one that writes files and logs."""
        return self.rank == 0

    def told(self, value: T) -> T:
        """What rank 0 has there, in all processes."""
        return value

    def largest(self, *numbers: float) -> tuple[float, ...]:
        """Of each number the largest that a process has; on the host, in 64 bits."""
        return numbers

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, which takes the tensor's place."""
        return tensor

    def told_tensor(self, tensor: Tensor) -> Tensor:
        """Rank 0's tensor, which takes the place of a process's own of the same shape, on the host."""
        return tensor

    def led(self, do: Callable[[], T]) -> T:
        """What `do` gives to rank 0, which alone does it.

        Raises:
            UserError, RunError: what it raised there, in all processes.
        """
        return do()

    def in_turn(self, do: Callable[[], T]) -> T:
        """What `do` gives to each process, done first by one on every machine: others find what it leaves there.

        Raises:
            UserError, RunError: what it raised in one of them, in all processes.
        """
        return do()


class Group(Processes):
    """Several processes, joined by `torch.distributed`."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.host = dist.new_group(backend="gloo", timeout=PATIENCE)
        """For what the host knows: no device waits for it."""

    def told(self, value: T) -> T:
        """From rank 0, pickled."""
        box: list[Any] = [value if self.leads else None]
        dist.broadcast_object_list(box, src=0, group=self.host)
        told: T = box[0]
        return told

    def largest(self, *numbers: float) -> tuple[float, ...]:
        """By gloo."""
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self.host)
        return tuple(tensor.tolist())

    def total(self, tensor: Tensor) -> Tensor:
        """By the device's own backend."""
        dist.all_reduce(tensor)
        return tensor

    def told_tensor(self, tensor: Tensor) -> Tensor:
        """By gloo."""
        dist.broadcast(tensor, src=0, group=self.host)
        return tensor

    def led(self, do: Callable[[], T]) -> T:
        """Rank 0 does it, and tells how it went."""
        value, error = _attempt(do) if self.leads else (None, None)
        value, error = self.told((value, error))
        if error:
            raise error
        return value  # type: ignore[return-value]

    def in_turn(self, do: Callable[[], T]) -> T:
        """Twice: by the first of each machine, then by all others."""
        mine: tuple[T | None, Exception | None] = (None, None)
        for turn in (True, False):
            if (local_rank() == 0) == turn:
                mine = _attempt(do)
            self._raise_any(mine[1])
        return mine[0]  # type: ignore[return-value]

    def _raise_any(self, mine: Exception | None) -> None:
        """The error of the first process that has one."""
        errors: list[Any] = [None] * self.size
        dist.all_gather_object(errors, mine, group=self.host)
        for error in errors:
            if error:
                raise error


def _attempt(do: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """What it gives, or the error that is to be told; another one is raised, and ends all processes."""
    try:
        return do(), None
    except (UserError, RunError) as error:
        return None, error


def together(task: Callable[[S, Path | None, Processes], R]) -> Callable[[S, Path | None], R]:
    """A script's task, done by all processes that torchrun started, each with the settings of rank 0."""

    @wraps(task)
    def joined_task(settings: S, folder: Path | None) -> R:
        with joined(settings.device) as processes:
            return task(*processes.told((settings, folder)), processes)

    return joined_task


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """Within, the processes that torchrun started are joined: over NCCL on cuda, over gloo elsewhere.

    Args:
        device: the kind that each shall have one of.

    Raises:
        UserError: there is none, or there are too few.
        RunError: another process cannot be reached, or no longer.
    """
    chosen = choose_device(device, local_rank(), local_size())
    prepare_device(chosen)
    if not is_launched():
        yield Processes(chosen)
        return
    with _lost_told():
        dist.init_process_group("cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo")
        yield Group(chosen)
        # Not where something failed: it would wait for those that are gone.
        dist.destroy_process_group()


@contextmanager
def _lost_told() -> Iterator[None]:
    """Have it told in plain words that another process is gone."""
    try:
        yield
    except (RuntimeError, dist.DistError) as error:
        if not any(words.lower() in str(error).lower() for words in LOST):
            raise
        raise RunError("other processes of this run cannot be reached: see the message of the one that ended") from None
