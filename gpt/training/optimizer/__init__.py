"""Optimizers: the contract of a variant, the groups that parameters fall into, and its state by name."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn, optim

from gpt.config import UserError, Variant
from gpt.model.gpt import GPT


class OptimizerConfig(Variant):
    """An optimizer variant's configuration."""

    def build(self, model: GPT) -> optim.Optimizer:
        """The optimizer over named parameters; each group has a `name`, of `parameter_groups`, and its `initial_lr`."""
        raise NotImplementedError


def parameter_groups(model: GPT) -> dict[str, dict[str, nn.Parameter]]:
    """Every parameter in exactly one of three groups, by name.

    matrices: what multiplies, inside the blocks. embeddings: tables with a row a token or a position, the head among
    them. vectors: gains and biases.
    """
    groups: dict[str, dict[str, nn.Parameter]] = {"matrices": {}, "embeddings": {}, "vectors": {}}
    for name, parameter in model.named_parameters():
        tables = "matrices" if name.startswith("blocks.") else "embeddings"
        groups["vectors" if parameter.ndim < 2 else tables][name] = parameter
    return groups


STATE = "state."
"""How the names of state tensors begin."""


def optimizer_state(model: GPT, optimizer: optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state tensors by the names of the parameters, as in state.embedding.weight.exp_avg; no copies."""
    return {name: value for name, value in _flat(model, optimizer).items() if name.startswith(STATE)}


def load_optimizer_state(model: GPT, optimizer: optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Have the optimizer go on from an `optimizer_state`.

    Raises:
        UserError: it is another optimizer's, or another model's.
    """
    flat = _flat(model, optimizer)
    wanted = {name: tensor.shape for name, tensor in flat.items() if name.startswith(STATE)}
    given = {name: tensor.shape for name, tensor in tensors.items()}
    if given != wanted:
        names = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
        raise UserError(
            f"resume: the state of the optimizer does not fit its configuration, {names[0]} for one; "
            "start a new run from the weights with init="
        )
    # Imported where it is used, here and below: it takes a second.
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_optimizer_state_dict

    options = StateDictOptions(flatten_optimizer_state_dict=True)
    set_optimizer_state_dict(model, optimizer, dict(flat, **tensors), options=options)


def _flat(model: GPT, optimizer: optim.Optimizer) -> dict[str, Any]:
    """PyTorch's state dict with a key for each tensor and setting; what is lazily made is made."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

    return get_optimizer_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True))
