"""One forward of the unchanged model over a text, watched: its logits, and by what each layer weighs values."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from gpt.model.attention import Attention
from gpt.model.gpt import GPT


class Seen(NamedTuple):
    """What one forward showed, fp32, on the CPU."""

    logits: Tensor
    """(length, rows of the embedding)."""
    weights: list[Tensor]
    """(n_head, length, length) of each layer; row i is what query i takes of each key."""


@torch.inference_mode()
def observe(model: GPT, ids: Sequence[int]) -> Seen:
    """Read a text, and see all of it.

    The forward is the model's own, fast path and all. The weights are those that the attention's own `weights` writes
    out from the queries and keys of that forward.

    Args:
        model: in evaluation mode.
        ids: one or more tokens; as many as the model has positions for.
    """
    weights: list[Tensor] = []
    with watching(model.attentions, weights):
        logits = model(torch.tensor([ids], device=model.embedding.weight.device))
    return Seen(logits[0].float().cpu(), weights)


@contextmanager
def watching(attentions: Sequence[Attention], weights: list[Tensor]) -> Iterator[None]:
    """Within, each call of an attention appends the weights of its first row to the list."""

    def before(attention: Any, inputs: tuple[Any, ...]) -> None:
        x, place, *_ = inputs
        query, key, _ = attention.place(x, place)
        weights.append(attention.weights(query.float(), key.float(), place)[0].float().cpu())

    handles: list[RemovableHandle] = [attention.register_forward_pre_hook(before) for attention in attentions]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
