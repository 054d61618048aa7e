"""How surprised a model is: -log2 p of each token given those before it, in bits; and what it expects next."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Step(NamedTuple):
    """Of surprise, as it is coloured."""

    below: float
    """Bits."""
    colour: str
    """Behind a token."""
    ink: str
    """Of its letters."""
    label: str


STEPS = (
    Step(1, "#fff7d6", "#202020", "under 1"),
    Step(3, "#fed976", "#202020", "1 to 3"),
    Step(6, "#fd8d3c", "#202020", "3 to 6"),
    Step(10, "#d7301f", "#ffffff", "6 to 10"),
    Step(math.inf, "#67001f", "#ffffff", "10 and more"),
)
"""From what was expected to what was not; the darker the rarer, so that it is seen without telling colours apart."""

READ_AS = "A token of b bits was expected once in 2^b times."

NO_SURPRISE = Step(0, "#d9dde2", "#202020", "none: nothing stands before it")
"""The first token's."""


def step_of(bits: float | None) -> Step:
    """The step that a surprise falls into.

    >>> step_of(0.5).below, step_of(1).below, step_of(99).below
    (1, 3, inf)
    """
    return NO_SURPRISE if bits is None else next(step for step in STEPS if bits < step.below)


def surprises(logits: Tensor, ids: Sequence[int]) -> list[float | None]:
    """Bits of each token; None for the first, before which nothing stands.

    Args:
        logits: (length, vocabulary), row i what was expected after token i.
        ids: (length).
    """
    expected = logits[:-1].log_softmax(-1)
    bits = expected.gather(1, torch.tensor(ids[1:], dtype=torch.int64)[:, None])[:, 0] / -math.log(2)
    return [None, *(max(0.0, b) for b in bits.tolist())]


def likeliest(logits: Tensor, count: int) -> list[tuple[int, float]]:
    """The ids of the highest probability, at most so many, and their probabilities.

    Args:
        logits: (vocabulary).
        count: of ids; more than there are is all of them.
    """
    best = logits.softmax(-1).topk(min(count, logits.size(-1)))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


class Mean(NamedTuple):
    """The mean surprise of the tokens that have one."""

    per_token: float
    """Bits per token."""
    per_byte: float
    """Bits per byte of these tokens' text, which compares across tokenizers."""


def mean(bits: Sequence[float | None], sizes: Sequence[int]) -> Mean | None:
    """Their mean; None where no token has a surprise.

    Args:
        bits: of each token.
        sizes: bytes of each token.
    """
    told = [(b, size) for b, size in zip(bits, sizes, strict=True) if b is not None]
    total, size = sum(b for b, _ in told), sum(size for _, size in told)
    return Mean(total / len(told), total / size) if size else None
