"""The work that attention is measured by: a layer's `attend` on given queries, keys and values."""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor

from gpt.model.attention import Attention, Place
from gpt.model.cache import KeyValueMemory, Memory


class Inputs(NamedTuple):
    """Of one text, each of shape (1, heads, length, head_dim)."""

    query: Tensor
    key: Tensor
    value: Tensor
    gradient: Tensor
    """Of some loss, with respect to what `attend` gives."""

    @classmethod
    def draw(cls, attention: Attention, length: int, dtype: torch.dtype, device: torch.device) -> "Inputs":
        """Standard normal ones for a layer."""
        heads = (attention.n_head, attention.n_kv_head, attention.n_kv_head, attention.n_head)
        drawn = [torch.randn(1, n, length, attention.head_dim, device=device, dtype=dtype) for n in heads]
        query, key, value = (tensor.requires_grad_() for tensor in drawn[:3])
        return cls(query, key, value, drawn[3])

    @property
    def length(self) -> int:
        """Tokens."""
        return self.query.size(2)

    def at(self, begin: int, end: int) -> "Inputs":
        """Those of the tokens from `begin` to `end`, without gradients."""
        return Inputs(*(tensor.detach()[:, :, begin:end] for tensor in self))


def place_of(begin: int, end: int, device: torch.device) -> Place:
    """Of the tokens from position `begin` to `end`; one document, without padding."""
    return Place(None, torch.arange(begin, end, device=device)[None], None, None)


def training(attention: Attention, inputs: Inputs) -> Callable[[], int]:
    """Forward and backward over the whole text, as work that counts one a call."""
    learned = inputs[:3]
    length, device = inputs.length, inputs.query.device

    def work() -> int:
        # a new place each time, so that masks are made as they are in each call of a model
        mixed = attention.attend(*learned, place_of(0, length, device), None)
        torch.autograd.grad(mixed, learned, inputs.gradient)
        return 1

    return work


def decoding(attention: Attention, inputs: Inputs, memory: Memory) -> Callable[[], int]:
    """The text's last token after all others, which `memory` holds, as work that counts one a call."""
    length, device = inputs.length, inputs.query.device
    last = inputs.at(length - 1, length)

    def work() -> int:
        with torch.inference_mode():
            # a shallow copy has the same buffers and its own count: the token always comes after as many others
            place = place_of(length - 1, length, device)
            attention.attend(last.query, last.key, last.value, place, copy(memory))
        return 1

    return work


def filled(attention: Attention, inputs: Inputs, capacity: int) -> Memory:
    """A layer's memory for `capacity` tokens, with the text in it."""
    memory, given = attention.build_memory(capacity), inputs.at(0, inputs.length)
    with torch.no_grad():
        if isinstance(memory, KeyValueMemory):
            memory.append(given.key, given.value, None)  # attending would take length² where nothing is left out
        else:
            place = place_of(0, inputs.length, given.key.device)
            attention.attend(given.query, given.key, given.value, place, memory)
    return memory
