"""Tables that a training begins with more or fewer rows of than there are: a longer context, a larger vocabulary.

Rows that are new are those that the model was initialised with; those that are too many, the last ones, are left out.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from torch import Tensor

from gpt.config import UserError
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

TABLES = ("embedding.weight", "head.weight", "position.table.weight")
"""The parameters that have a row for each token, or for each position."""

Shapes = Mapping[str, tuple[int, ...]]


def shapes_of(config: GPTConfig) -> Shapes:
    """The shapes of a model's parameters, by name."""
    with torch.device("meta"):
        return {name: tuple(tensor.shape) for name, tensor in GPT(config).state_dict().items()}


def refuse_untrained(found: Shapes, wanted: Shapes, frozen: Collection[str]) -> None:
    """A table whose new rows would stay as they were drawn is of no use.

    Args:
        found: of the weights that there are.
        wanted: of the model that begins with them.
        frozen: names of parameters that are not trained.

    Raises:
        UserError: one has new rows, and is frozen.
    """
    for name in sorted(found.keys() & wanted.keys() & set(frozen)):
        if new := max(0, wanted[name][0] - found[name][0]):
            raise UserError(
                f"freeze: {name} begins with {new:,} new rows, which would stay as they are drawn; leave it out, or "
                "keep the size that it has"
            )


def changes(found: Shapes, wanted: Shapes, path: Path) -> list[str]:
    """What becomes of the tables' rows, in words.

    Args:
        found: of the weights that there are.
        wanted: of the model that begins with them.
        path: where they are, for the error.

    Raises:
        UserError: they differ in more than the rows of tables.
    """
    told = []
    for name in sorted(found.keys() | wanted.keys()):
        there, here = found.get(name), wanted.get(name)
        if there == here:
            continue
        if name not in TABLES or not there or not here or there[1:] != here[1:]:
            raise UserError(
                f"run: the weights in {path} do not have the names and shapes of the configuration, {name} for one: "
                f"{there or 'not there'} and {here or 'not there'}; give the model the sizes and parts that it was "
                "trained with"
            )
        old, new = there[0], here[0]
        what = f"the last {new - old:,} are new" if new > old else f"the last {old - new:,} are left out"
        told.append(f"{name} has {new:,} rows in place of {old:,}: {what}")
    return told


def fitted(weights: Mapping[str, Tensor], model: GPT) -> dict[str, Tensor]:
    """The weights, each table with as many rows as the model's: new ones are the model's own.

    >>> from gpt.model.config import GPTConfig
    >>> model = GPT(GPTConfig(vocab_size=3, n_layer=1, n_head=1, d_model=2))
    >>> fitted({"embedding.weight": torch.zeros(2, 2)}, model)["embedding.weight"].any(dim=1)
    tensor([False, False,  True])
    """
    own = model.state_dict()
    return {
        name: torch.cat((tensor[: len(own[name])], own[name][len(tensor) :])) if name in TABLES else tensor
        for name, tensor in weights.items()
    }
