"""FlexAttention (Dong et al. 2024, arXiv:2412.05496): one predicate gives a fused kernel that skips what is not seen.

On CUDA only: in PyTorch 2.13 it has no backward on a CPU. It has no dropout, and a position's bias is computed for all
pairs, not for one; with either, the callers go another way.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from gpt.model.attention import Place
from gpt.model.attention._blocks import gather
from gpt.model.mask import Predicate, Where
from gpt.model.pattern import Pattern


def is_there(device: torch.device) -> bool:
    """Whether the device has it; it is compiled by Triton."""
    return device.type == "cuda" and find_spec("triton") is not None


def supports(device: torch.device, biased: bool, dropout: float, width: int) -> bool:
    """Whether it is there, and has what is asked of it.

    Args:
        device: where.
        biased: whether a position biases the scores.
        dropout: share of the weights that is dropped.
        width: of queries and keys.
    """
    return is_there(device) and not biased and not dropout and width >= 16


def attend(visible: Predicate, query: Tensor, key: Tensor, value: Tensor, place: Place) -> Tensor:
    """What a predicate shows, of one text at once: (batch, n_head, length, head_dim)."""
    return fused(query, key, value, made(among, visible, place))


def attend_columns(pattern: Pattern, query: Tensor, key: Tensor, value: Tensor, place: Place) -> Tensor:
    """What a pattern with columns shows.

    They stand in every block of keys, all of which would have to be visited: they are gathered in front of the keys.
    """
    columns, mask = made(before, pattern, place)
    front = [gather(tensor, columns[:, None])[:, :, 0] for tensor in (key, value)]
    return fused(query, torch.cat((front[0], key), dim=2), torch.cat((front[1], value), dim=2), mask)


def made(make: Callable[[Any, Where], Any], seen: Predicate | Pattern, place: Place) -> Any:
    """What `make` gives of who is seen and of where the tokens are, once for all layers of a call.

    To make a mask, all pairs are looked at. That of a plain text is kept from call to call, but not in compiled code,
    which would trace what keeps it.
    """
    if place.where is None and not torch.compiler.is_compiling():
        return of_plain(make, seen, place.position.size(1), place.position.device)
    return place.once((make, seen), lambda: make(seen, place.located))


@lru_cache(maxsize=8)
@torch.inference_mode(False)  # what was made in an evaluation is used in training, too
def of_plain(make: Callable[[Any, Where], Any], seen: Predicate | Pattern, length: int, device: torch.device) -> Any:
    """`make` for one document from its beginning."""
    return make(seen, Where.contiguous(0, length, device))


def among(visible: Predicate, where: Where) -> BlockMask:
    """What is seen of one another."""
    return block_mask(visible, where, where)


def before(pattern: Pattern, where: Where) -> tuple[Tensor, BlockMask]:
    """The columns' indices, and what is seen of them and of all keys after them."""
    columns = find_columns(pattern, where)
    return columns, column_mask(pattern, Pattern(pattern.window, pattern.sinks), where, columns)


def fused(query: Tensor, key: Tensor, value: Tensor, mask: BlockMask) -> Tensor:
    """The kernel's call."""
    flex, _ = kernels(query.device.type)
    return flex(query, key, value, block_mask=mask, enable_gqa=query.size(1) != key.size(1))


def kernels(device: str) -> tuple[Any, Any]:
    """`flex_attention` and `create_block_mask`: compiled on cuda, as they stand elsewhere, where they are tested.

    As they stand in compiled code too, with which they are compiled.
    """
    return compiled() if device == "cuda" and not torch.compiler.is_compiling() else (flex_attention, create_block_mask)


@cache
def compiled() -> tuple[Any, Any]:
    """Both, compiled once."""
    return torch.compile(flex_attention), torch.compile(create_block_mask)


def block_mask(visible: Callable[[Where, Where], Tensor], query: Where, key: Where) -> BlockMask:
    """Which blocks of keys the kernel visits for each block of queries, and what it hides within them.

    Args:
        visible: who sees whom.
        query: where the queries are, (rows, query_length); one row stands for all.
        key: where the keys are, (rows, key_length).
    """
    rows, device = query.position.size(0), query.position.device

    def seen(b: Tensor, _: Tensor, q: Tensor, k: Tensor) -> Tensor:
        row = b if rows > 1 else 0
        return visible(Where(*(t[row, q] for t in query)), Where(*(t[row, k] for t in key)))

    _, create = kernels(device.type)
    sizes = query.position.size(1), key.position.size(1)
    mask: BlockMask = create(seen, rows if rows > 1 else None, None, *sizes, device=device)
    return mask


def find_columns(pattern: Pattern, where: Where) -> Tensor:
    """Indices of the columns of each row's documents, (rows, length / stride); past the last one, of other tokens."""
    assert pattern.stride
    is_column = (where.position >= 0) & ((where.position + 1) % pattern.stride == 0)
    return is_column.int().argsort(dim=1, descending=True, stable=True)[:, : where.position.size(1) // pattern.stride]


def column_mask(pattern: Pattern, near: Pattern, where: Where, columns: Tensor) -> BlockMask:
    """Of the columns in front, what is beyond window and sinks; of all keys, what is within them.

    What stands in front has a document number of its own: the true one's complement, which is negative.
    """
    position, document = (t.gather(1, columns) for t in where)
    key = Where(torch.cat((position, where.position), dim=1), torch.cat((~document, where.document), dim=1))
    every, in_place = pattern.visible, near.visible

    def visible(query: Where, key: Where) -> Tensor:
        in_front = key.document < 0
        true = Where(key.position, key.document.where(~in_front, ~key.document))
        shown = in_place(query, true)
        return torch.where(in_front, every(query, true) & ~shown, shown)

    return block_mask(visible, where, key)
