"""Weights under two sets of names: a table says which module of theirs holds what ours holds.

    ours                      theirs
    blocks.*.attention.qkv    layers.*.q_proj, layers.*.k_proj, layers.*.v_proj

The star is a block's number. Where theirs are several, ours has their rows one after the other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gpt.model.config import GPTConfig

Cut = Callable[[Tensor, GPTConfig], Sequence[Tensor]]
"""Cuts a tensor of ours into the parts that theirs are."""


class Row(NamedTuple):
    """One module of ours."""

    ours: str
    theirs: tuple[str, ...]
    cut: Cut = lambda tensor, _: (tensor,)
    transposed: bool = False
    """Whether theirs is a matrix of (in, out); ours is (out, in)."""

    def of_block(self, number: int) -> "Row":
        """The row with a number in place of the star."""
        theirs = tuple(their.replace("*", str(number)) for their in self.theirs)
        return self._replace(ours=self.ours.replace("*", str(number)), theirs=theirs)

    def turned(self, tensor: Tensor) -> Tensor:
        """From theirs to ours, or back."""
        return tensor.mT if self.transposed and tensor.ndim == 2 else tensor


def by_heads(tensor: Tensor, config: GPTConfig) -> Sequence[Tensor]:
    """The rows of queries, of keys and of values."""
    return tensor.split([heads * config.head_size for heads in (config.n_head, config.kv_heads, config.kv_heads)])


def in_halves(tensor: Tensor, _: GPTConfig) -> Sequence[Tensor]:
    """The rows of gate and up."""
    return tensor.chunk(2)


def outward(weights: Mapping[str, Tensor], table: Iterable[Row], config: GPTConfig) -> dict[str, Tensor]:
    """Our weights under their names; views of ours.

    Args:
        weights: by our names.
        table: with a row for each module of ours.
        config: of the model.
    """
    rows, found = by_module(table, config.n_layer), {}
    for name, tensor in weights.items():
        module, _, part = name.rpartition(".")
        row = rows[module]
        for their, piece in zip(row.theirs, row.cut(tensor, config), strict=True):
            found[f"{their}.{part}"] = row.turned(piece)
    return found


def inward(
    names: Iterable[str], read: Callable[[str], Tensor], table: Iterable[Row], config: GPTConfig
) -> dict[str, Tensor]:
    """Their weights under our names, fp32.

    Args:
        names: ours.
        read: a tensor by their name.
        table: as of `outward`.
        config: of the model.
    """
    rows, found = by_module(table, config.n_layer), {}
    for name in names:
        module, _, part = name.rpartition(".")
        row = rows[module]
        pieces = [row.turned(read(f"{their}.{part}")).float() for their in row.theirs]
        found[name] = torch.cat(pieces) if len(pieces) > 1 else pieces[0].contiguous()
    return found


def by_module(table: Iterable[Row], n_layer: int) -> dict[str, Row]:
    """The rows of all blocks, by our module."""
    several = (row.of_block(number) for row in table for number in range(n_layer if "*" in row.ours else 1))
    return {row.ours: row for row in several}
