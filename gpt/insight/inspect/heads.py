"""What a head does, in three numbers.

Each is the mean over all queries i of a text of n tokens, w being the head's weights:

entropy   -sum_j w_ij log2 w_ij      bits; 0: all on one token, log2 n: the same on n
first     w_i1                       the share on the first token, a sink where it is large (Xiao et al. 2023)
back      sum_j w_ij (i - j)         tokens looked back; 0: on itself
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Heads(NamedTuple):
    """The numbers of all heads, each a tensor of (n_layer, n_head)."""

    entropy: Tensor
    first: Tensor
    back: Tensor


class Head(NamedTuple):
    """One head's."""

    layer: int
    """From 1."""
    head: int
    """From 1."""
    entropy: float
    first: float
    back: float


def measure(weights: Sequence[Tensor]) -> Heads:
    """The numbers of each layer's weights, (n_head, length, length)."""
    numbers = [(entropy(w), w[..., 0].mean(-1), distance(w)) for w in weights]
    return Heads(*(torch.stack(of_layers) for of_layers in zip(*numbers, strict=True)))


def entropy(weights: Tensor) -> Tensor:
    """Bits, mean over queries: (n_head, length, length) -> (n_head,); 0 log 0 is 0."""
    nats = -torch.special.xlogy(weights, weights).sum(-1).mean(-1)
    return nats / math.log(2) + 0.0  # which makes 0 of -0


def distance(weights: Tensor) -> Tensor:
    """Tokens looked back, mean over queries: (n_head, length, length) -> (n_head,)."""
    index = torch.arange(weights.size(-1))
    return (weights * (index[:, None] - index)).sum(-1).mean(-1)


def each(heads: Heads) -> list[Head]:
    """All heads, layer by layer."""
    layers, count = heads.entropy.shape
    return [Head(i + 1, j + 1, *(float(n[i, j]) for n in heads)) for i in range(layers) for j in range(count)]


KINDS: Mapping[str, Callable[[Head], float]] = {
    "sharpest": lambda head: head.entropy,
    "broadest": lambda head: -head.entropy,
    "most on the first token": lambda head: -head.first,
    "farthest back": lambda head: -head.back,
    "nearest": lambda head: head.back,
}
"""What makes a head worth a look, and what is least in the one that is it most."""


def remarkable(heads: Sequence[Head], count: int) -> dict[Head, str]:
    """The first `count` heads of each kind, in the order of `heads`, and what they are, in words."""
    kinds = {kind: sorted(heads, key=least)[:count] for kind, least in KINDS.items()}
    telling = [kind for kind, least in KINDS.items() if len({least(head) for head in heads}) > 1]  # else all are it
    first = {head for best in kinds.values() for head in best}
    return {head: ", ".join(kind for kind in telling if head in kinds[kind]) for head in heads if head in first}
