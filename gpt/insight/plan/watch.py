"""How much memory tensors take, counted while they are pretended.

Within FakeTensorMode of PyTorch an operation computes shapes, types and devices, and no numbers: tensors have storages
of their size that are nowhere. A storage is counted from the operation that makes it to the end of the last tensor in
it; what autograd keeps for a backward lives as long as it would in truth.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

LARGE = 32 << 20
"""Bytes of what the GNU C library always takes from the system apart, and gives back at once (mallopt(3))."""


class Watch(TorchDispatchMode):
    """Counts the bytes of all storages that are made within."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        """Bytes at most, since `restart`."""
        self.parts = [0, 0]
        """Bytes now, in storages below `LARGE` and in others."""
        self.most_small = self.most_large = 0
        """Each at most."""
        self._storages: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    @property
    def live(self) -> int:
        """Bytes now."""
        return sum(self.parts)

    def restart(self) -> None:
        """Forget what there was at most."""
        self.peak, (self.most_small, self.most_large) = self.live, self.parts

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Do an operation, and count what it made."""
        made = func(*args, **(kwargs or {}))
        for leaf in tree_iter(made):
            if isinstance(leaf, Tensor):
                self._count(leaf.untyped_storage())
        return made

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, nbytes = id(storage), storage.nbytes()
        if key in self._storages:
            return

        def forget(_: object) -> None:
            del self._storages[key]
            self._add(-nbytes, nbytes >= LARGE)

        self._storages[key] = weakref.ref(storage, forget)
        self._add(nbytes, nbytes >= LARGE)

    def _add(self, nbytes: int, large: bool) -> None:
        self.parts[large] += nbytes
        small_now, large_now = self.parts
        self.peak = max(self.peak, self.live)
        self.most_small, self.most_large = max(self.most_small, small_now), max(self.most_large, large_now)


@contextmanager
def pretended(device: torch.device) -> Iterator[Watch]:
    """Within, tensors are made on the device in pretence only, and counted."""
    with FakeTensorMode(), torch.device(device), Watch() as watch:
        yield watch
