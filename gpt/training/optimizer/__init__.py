"""Optimizers: the contract of a variant, the groups that parameters fall into, and its state by name."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.distributed.tensor import DTensor

from gpt.config import UserError, Variant
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.parallel import as_shared


class OptimizerConfig(Variant):
    """An optimizer variant's configuration."""

    def build(self, model: GPT) -> optim.Optimizer:
        """The optimizer over named parameters; each group has a `name`, of `parameter_groups`, and its `initial_lr`."""
        raise NotImplementedError


def parameter_groups(model: GPT) -> dict[str, dict[str, nn.Parameter]]:
    """Every parameter that is trained in exactly one of three groups, by name; what is frozen in none.

    matrices: what multiplies, inside the blocks. embeddings: tables with a row a token or a position, the head among
    them. vectors: gains and biases.
    """
    groups: dict[str, dict[str, nn.Parameter]] = {"matrices": {}, "embeddings": {}, "vectors": {}}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        tables = "matrices" if name.startswith("blocks.") else "embeddings"
        groups["vectors" if parameter.ndim < 2 else tables][name] = parameter
    return groups


STATE = "state."
"""How the names of state tensors begin."""


def optimizer_state(model: GPT, optimizer: optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state tensors by the names of the parameters, as in state.embedding.weight.exp_avg; no copies."""
    return {name: value for name, value in _flat(model, optimizer, whole=True).items() if name.startswith(STATE)}


def load_optimizer_state(
    model: GPT, optimizer: optim.Optimizer, read: Callable[[], Mapping[str, Tensor]], processes: Processes
) -> None:
    """Have the optimizer go on from an `optimizer_state`.

    Args:
        model: as the optimizer has it.
        optimizer: a new one.
        read: gives the state; of several processes rank 0 alone calls it.
        processes: those that the model is spread over.

    Raises:
        UserError: it is another optimizer's, or another model's.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_optimizer_state_dict  # takes a second

    flat = _flat(model, optimizer, whole=False)
    tensors = read() if processes.leads else {}
    if processes.leads:
        refuse_misfit(flat, tensors)
    for name in sorted(name for name in flat if name.startswith(STATE)):
        flat[name] = as_shared(processes.told_tensor(tensors.get(name, _empty(flat[name]))), flat[name])
    set_optimizer_state_dict(model, optimizer, flat, options=StateDictOptions(flatten_optimizer_state_dict=True))


def refuse_misfit(flat: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Compare the state of an optimizer with what shall be its state, by names and shapes.

    Raises:
        UserError: they differ.
    """
    wanted = {name: tensor.shape for name, tensor in flat.items() if name.startswith(STATE)}
    given = {name: tensor.shape for name, tensor in tensors.items()}
    if given != wanted:
        names = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
        raise UserError(
            f"resume: the state of the optimizer does not fit its configuration, {names[0]} for one; "
            "start a new run from the weights with init="
        )


def _flat(model: GPT, optimizer: optim.Optimizer, whole: bool) -> dict[str, Any]:
    """PyTorch's state dict with a key for each tensor and setting; what is lazily made is made.

    Args:
        model: as the optimizer has it.
        optimizer: whose.
        whole: of what is shared out among processes, rank 0 gets all, on its host, and the others nothing; else each
            gets its part.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict  # takes a second

    gathered = whole and any(isinstance(parameter, DTensor) for parameter in model.parameters())
    options = StateDictOptions(flatten_optimizer_state_dict=True, full_state_dict=gathered, cpu_offload=gathered)
    return get_optimizer_state_dict(model, optimizer, options=options)


def _empty(like: Tensor) -> Tensor:
    return torch.empty(like.shape, dtype=like.dtype)
