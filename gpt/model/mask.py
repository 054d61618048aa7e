"""Who sees whom: predicates on where tokens are, never on indices.

Each token carries `where = (position, document)`. A predicate takes the wheres of queries and keys, of any shapes that
broadcast, and tells which query sees which key. Predicates compose with `&` and `|`, and every one is false where
either position is -1, which means that nothing is there: padding, or a cache slot not yet written.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor


class Where(NamedTuple):
    """Where tokens are: two int64 tensors of one shape, usually (batch, length)."""

    position: Tensor
    """Place in its document, from 0; -1 where nothing is."""
    document: Tensor
    """Which document the token belongs to."""

    @classmethod
    def contiguous(cls, start: int, length: int, device: torch.device | str) -> Self:
        """`length` tokens of one document from position `start` on, shape (1, length)."""
        position = torch.arange(start, start + length, device=device)[None]
        return cls(position, torch.zeros_like(position))


Rule = Callable[[Where, Where], Tensor]


class Predicate:
    """A rule on two wheres, false where either position is -1."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __call__(self, query: Where, key: Where) -> Tensor:
        """True where the query sees the key; shape: the two broadcast."""
        return self.rule(query, key) & (query.position >= 0) & (key.position >= 0)

    def __and__(self, other: "Predicate") -> "Predicate":
        return Predicate(lambda query, key: self.rule(query, key) & other.rule(query, key))

    def __or__(self, other: "Predicate") -> "Predicate":
        return Predicate(lambda query, key: self.rule(query, key) | other.rule(query, key))


causal = Predicate(lambda query, key: key.position <= query.position)
same_document = Predicate(lambda query, key: key.document == query.document)


def dense_mask(visible: Predicate, query: Where, key: Where) -> Tensor:
    """`visible` for all pairs: (batch, query_length), (batch, key_length) -> (batch, 1, query_length, key_length)."""
    rows = Where(*(t[:, None, :, None] for t in query))
    columns = Where(*(t[:, None, None, :] for t in key))
    return visible(rows, columns)


def build_causal_mask(sequence_length: int, device: torch.device | str = "cpu") -> Tensor:
    """The mask of a decoder: token i sees tokens 0..i. Shape (1, 1, sequence_length, sequence_length), bool.

    Raises:
        ValueError: `sequence_length` below 1.
        TypeError: `sequence_length` is no integer.

    >>> build_causal_mask(3)[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    if operator.index(sequence_length) < 1:
        raise ValueError(f"sequence_length must be at least 1, got {sequence_length}")
    where = Where.contiguous(0, sequence_length, device)
    return dense_mask(causal, where, where)
