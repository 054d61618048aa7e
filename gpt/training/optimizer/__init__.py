"""Optimizers: the contract of an optimizer variant, and the groups that parameters fall into."""

from torch import nn, optim

from gpt.config import Variant
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
