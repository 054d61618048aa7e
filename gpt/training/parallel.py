"""How a model is spread over the processes of a run: copied to each (DDP), or shared out among them (FSDP).

ddp (Li et al. 2020, arXiv:2006.15704): each has all of it; gradients are averaged while they are computed.
fsdp (Zhao et al. 2023, arXiv:2304.11277; PyTorch's `fully_shard`): each has a part of every weight, of its gradient and
of the optimizer's state for it; a block is put together when it is computed.

Either way an update is the one that a single process would make, but for rounding. What leaves the processes is whole
again, under the names of a model that was never spread.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Replicate

from gpt.data.batches import Batches
from gpt.model.gpt import GPT
from gpt.processes import Processes

Parallel = Literal["ddp", "fsdp"]


class Spread:
    """A model as one process has it; here the only process.

    Args:
        model: on its device. Its parameters are from here on what the optimizer is to be built over.
        processes: those it is spread over.
    """

    def __init__(self, model: GPT, processes: Processes) -> None:
        self.model = self.lay(model, processes)
        self.processes = processes
        self.forward: nn.Module = model
        """What a training calls."""

    def lay(self, model: GPT, processes: Processes) -> GPT:
        """The model, or what this process shall have of it, on its device."""
        return model.to(processes.device)

    @contextmanager
    def micro_step(self, last: bool) -> Iterator[None]:
        """Around the forward and backward of a micro-step; gradients are shared in an update's last one."""
        yield

    def micro_batches(self, batches: Batches, step: int, accumulate: int) -> list[tuple[Tensor, Tensor]]:
        """This process's share of an update's data."""
        return batches.micro_batches(step, accumulate, self.processes.rank, self.processes.size)

    def weights(self) -> dict[str, Tensor]:
        """All weights by name; of several processes rank 0 gets them, and all must call it."""
        return self.model.state_dict()

    def whole(self) -> GPT | None:
        """A model of these weights that computes alone; of several processes rank 0 gets it, and all must call it."""
        return self.model if self.processes.leads else None


class Copied(Spread):
    """DistributedDataParallel, whose copies begin with rank 0's weights."""

    def __init__(self, model: GPT, processes: Processes) -> None:
        super().__init__(model, processes)
        self.replica = nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        self.forward = self.replica

    @contextmanager
    def micro_step(self, last: bool) -> Iterator[None]:
        """Gradients add up where they are until the last one."""
        if last:
            yield
            return
        with self.replica.no_sync():
            yield


class Shared(Spread):
    """`fully_shard` of each block, and of what is around them."""

    def lay(self, model: GPT, processes: Processes) -> GPT:
        """A part of each weight; no more than one block is whole on the device."""
        # Outputs are views, which nobody changes in place.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
        for parameter in model.parameters():
            parameter.data = processes.told_tensor(parameter.data)
        mesh = init_device_mesh(processes.device.type, (processes.size,))
        for module in (*model.blocks, model):
            fully_shard(module, mesh=mesh)
        return model

    @contextmanager
    def micro_step(self, last: bool) -> Iterator[None]:
        """Whole gradients add up until the last one, which takes the memory of one more model."""
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(last)
        yield

    def weights(self) -> dict[str, Tensor]:
        """Gathered on rank 0's host; nothing elsewhere."""
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict  # takes a second

        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state: dict[str, Any] = get_model_state_dict(self.model, options=options)
        return state

    def whole(self) -> GPT | None:
        """A copy on rank 0's host."""
        weights = self.weights()
        if not self.processes.leads:
            return None
        with torch.device("meta"):
            model = GPT(self.model.config)
        model.load_state_dict(weights, assign=True)
        return model.train(self.model.training)


KINDS: dict[Parallel, type[Spread]] = {"ddp": Copied, "fsdp": Shared}


def spread(model: GPT, processes: Processes, parallel: Parallel) -> Spread:
    """The model on the processes' devices as `parallel` says; whole where there is only one process.

    Args:
        model: on the host; rank 0's weights count.
        processes: all of the run.
        parallel: how.
    """
    kind = KINDS[parallel] if processes.size > 1 else Spread
    return kind(model, processes)


def local(tensor: Tensor) -> Tensor:
    """The part of a tensor that this process has."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def as_shared(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor that all processes have, shared out among them as `like` is; as it is where that is not."""
    if not isinstance(like, DTensor):
        return tensor
    there = DTensor.from_local(tensor.to(like.device), like.device_mesh, [Replicate()])
    return there.redistribute(placements=like.placements)


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor; all processes that share it must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
