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
    """Where tokens are: two int64 tensors of one shape, usually (batch, length).

    In a row the tokens of a document stand together, one position after the other; nothing is between them.
    """

    position: Tensor
    """Place in its document, from 0; -1 where nothing is."""
    document: Tensor
    """Which document the token belongs to."""

    @classmethod
    def contiguous(cls, start: int, length: int, device: torch.device | str) -> Self:
        """`length` tokens of one document from position `start` on, shape (1, length)."""
        position = torch.arange(start, start + length, device=device)[None]
        return cls(position, torch.zeros_like(position))

    @classmethod
    def packed(cls, tokens: Tensor, separator: int) -> Self:
        """Rows of documents that each begin with the token `separator`, as (batch, length) like `tokens`.

        Positions restart in each document. What stands before the first separator is the rest of a document, of which
        nothing else is known: it begins at position 0 too.

        >>> Where.packed(torch.tensor([[7, 8, 0, 5, 6]]), separator=0)
        Where(position=tensor([[0, 1, 0, 1, 2]]), document=tensor([[0, 0, 1, 1, 1]]))
        """
        begins = tokens == separator
        index = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
        start = index.where(begins, 0).cummax(dim=1).values
        return cls(index - start, begins.cumsum(dim=1))


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

    def __invert__(self) -> "Predicate":
        return Predicate(lambda query, key: ~self.rule(query, key))


causal = Predicate(lambda query, key: key.position <= query.position)
same_document = Predicate(lambda query, key: key.document == query.document)


def within(window: int) -> Predicate:
    """The query's own position and the window - 1 before it."""
    return Predicate(lambda query, key: query.position - key.position < window)


def first(count: int) -> Predicate:
    """The first `count` tokens of a document, its sinks."""
    return Predicate(lambda _, key: key.position < count)


def every(stride: int) -> Predicate:
    """Each stride-th token of a document: positions stride - 1, 2·stride - 1, ..."""
    return Predicate(lambda _, key: (key.position + 1) % stride == 0)


def dense_mask(visible: Predicate, query: Where, key: Where) -> Tensor:
    """`visible` for all pairs: (batch, query_length), (batch, key_length) -> (batch, 1, query_length, key_length)."""
    rows = Where(*(t[:, None, :, None] for t in query))
    columns = Where(*(t[:, None, None, :] for t in key))
    return visible(rows, columns)


def additive(visible: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """What is added to the scores: the bias, or 0, where a key is seen, and -inf where it is not.

    PyTorch's kernels make it of a boolean mask at every call, and keep it for the backward: made once and in the
    scores' own dtype, it is shared by all layers.

    >>> additive(torch.tensor([[True, False]]), torch.tensor([[-3.0, -2.0]]), torch.float32)
    tensor([[-3., -inf]])
    """
    if bias is None:
        return torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible, float("-inf"))
    return bias.to(dtype).masked_fill(~visible, float("-inf"))


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
