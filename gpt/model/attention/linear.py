"""Linear attention (Katharopoulos et al. 2020, arXiv:2006.16236): time O(length), a memory of constant size.

    out_i = Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j)    over the visible j,    φ(x) = elu(x) + 1

The product with φ(q_i) comes out of the sums, so a query needs no keys and values, only S = Σ_j φ(k_j) [v_j, 1]ᵀ, whose
last column gives the denominator. Decoding adds one token to S and reads it. Training cuts the text into chunks: inside
a chunk the products are masked and written out; what lies before it is read from S, as it was where the chunk begins.

Queries and keys are rotated before φ, so that weights are positive and sum to 1. The price: φ of two turned vectors is
not a function of the distance alone, as their score is in softmax attention. Queries are not divided by sqrt(head_dim):
in a softmax that keeps the exponent small; here a factor common to all products cancels, and q itself would only be
moved towards 0, where φ tells its values apart least.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.config import UserError
from gpt.model.attention import Attention, AttentionConfig, Place
from gpt.model.cache import Memory
from gpt.model.cache.recurrent import RecurrentMemory, State
from gpt.model.config import GPTConfig
from gpt.model.mask import Where, dense_mask
from gpt.model.position import biases

CHUNK = 64
"""Tokens in a chunk; of 32, 64, 128 and 256 the fastest for heads 64 wide."""
BLOCK = 2048
"""Tokens whose chunks are computed together. A CPU takes new pages of memory for each very large tensor: the chunks of
32,768 tokens take twice as long all at once."""


class LinearConfig(AttentionConfig):
    """Sums in place of a softmax: O(length) time, and a memory that does not grow."""

    name: Literal["linear"] = "linear"

    def build(self, model: GPTConfig, layer: int) -> Attention:
        """Needs positions that do not bias scores."""
        if biases(model):
            raise UserError(
                f"model.position: {model.position.name} biases scores, which linear attention does not have; "
                "take another model/position, such as rope, or another model/attention"
            )
        return Linear(model)


class Linear(Attention):
    """Attention by a feature map and running sums, in fp32 at least whatever the dtype of its inputs.

    Attention dropout does not apply, since the weights that it would drop are never made.
    """

    endless = True

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Place, memory: Memory | None) -> Tensor:
        """Block after block, each from the state that the one before leaves."""
        if memory is not None:
            assert isinstance(memory, RecurrentMemory), f"{type(memory).__name__} keeps no running state"
        state = memory.read(key, value) if memory else State.empty(key, value)
        mixed = []
        with in_full(key.device):
            blocks = zip(*(x.split(BLOCK, dim=2) for x in (query, key, value)), strict=True)
            for (q, k, v), where in zip(blocks, blocks_of(place.where, key), strict=True):
                out, state = self.mix(q, k, v, where, state)
                mixed.append(out)
        if memory:
            memory.write(state)
        return torch.cat(mixed, dim=2)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, where: Where | None, before: State
    ) -> tuple[Tensor, State]:
        """Each query's mixture of the values that it sees, and the state after them; shapes as in `attend`."""
        read = step if key.size(2) == 1 else chunked
        queries = features_of(query, where).unflatten(1, (self.n_kv_head, -1))
        values = F.pad(widened(value), (0, 1), value=1.0)
        sums, after = read(queries, features_of(key, where), values, where, before)
        return divided(*sums.flatten(1, 2).split((value.size(3), 1), dim=-1)).to(value.dtype), after

    def weights(self, query: Tensor, key: Tensor, place: Place) -> Tensor:
        """φ(q)·φ(k) over the visible keys, divided by their sum: (batch, n_head, length, length), fp32 at least."""
        where = place.where or Where.contiguous(0, key.size(2), key.device)
        with in_full(key.device):
            products = features_of(query, None) @ self.repeat(features_of(key, None)).mT
            products = products.masked_fill(~dense_mask(self.visible, where, where), 0.0)
            return divided(products, products.sum(dim=-1, keepdim=True))

    def compared(self, length: int) -> int:
        """The rows of the state that it reads and adds to, in place of keys."""
        return min(length, self.head_dim)

    def build_memory(self, capacity: int) -> Memory:
        """A running state, of one size for any capacity."""
        return RecurrentMemory()

    def describe(self, device: torch.device, dtype: torch.dtype, packed: bool = False) -> str:
        """The chunked form."""
        return f"chunks of {CHUNK} tokens and a running state"


def blocks_of(where: Where | None, key: Tensor) -> list[Where] | list[None]:
    """`where` of each block of (batch, n_kv_head, length, head_dim) keys."""
    if where is None:
        return [None] * -(-key.size(2) // BLOCK)
    parts = (t.expand(key.size(0), -1).split(BLOCK, dim=1) for t in where)
    return [Where(*part) for part in zip(*parts, strict=True)]


def in_full(device: torch.device) -> AbstractContextManager[None]:
    """Within, nothing is rounded to what an autocast around says; on meta there is none to turn off."""
    there = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if there else nullcontext()


def widened(x: Tensor) -> Tensor:
    """In fp32 at least: sums over a long text overflow fp16, and lose new tokens in bf16."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def features_of(x: Tensor, where: Where | None) -> Tensor:
    """φ(x) = elu(x) + 1, and 0 for tokens that are not there: (batch, heads, length, head_dim) -> the same, `widened`.

    Written as max(x, 0) + exp(min(x, 0)), since elu(x) + 1 loses all digits of what is far below 0.
    """
    x = widened(x)
    features = x.relu() + x.clamp(max=0).exp()
    return features if where is None else features * (where.position >= 0)[:, None, :, None]


def divided(sums: Tensor, totals: Tensor) -> Tensor:
    """`sums` / `totals`, and 0 where nothing was summed."""
    return sums / totals.masked_fill(totals == 0, 1.0)


def step(query: Tensor, key: Tensor, value: Tensor, where: Where | None, before: State) -> tuple[Tensor, State]:
    """`chunked` for a single token: add it to the state, then read the state."""
    sums, document = before
    if where is not None:
        document = torch.where(where.position >= 0, where.document, before.document[:, None])[:, 0]
        sums = sums * (document == before.document)[:, None, None, None]
    sums = sums + key.mT * value
    return (query.squeeze(3) @ sums)[..., None, :], State(sums, document)


def chunked(query: Tensor, key: Tensor, value: Tensor, where: Where | None, before: State) -> tuple[Tensor, State]:
    """Σ_j φ(q_i)·φ(k_j) [v_j, 1] over the visible tokens j, those in the state before among them.

    Args:
        query: φ(q), (batch, n_kv_head, group, length, head_dim): the heads of a group read the same keys.
        key: φ(k), (batch, n_kv_head, length, head_dim).
        value: [v, 1], (batch, n_kv_head, length, head_dim + 1).
        where: where the tokens are, (batch, length); None for one document without padding.
        before: the state of the tokens before these.

    Returns:
        (batch, n_kv_head, group, length, head_dim + 1) sums, and the state after these tokens.
    """
    length, group = key.size(2), query.size(2)
    size = min(CHUNK, length)
    query, key, value = (cut(x, size) for x in (query, key, value))
    query = query.transpose(2, 3).flatten(3, 4)  # (batch, n_kv_head, chunks, group · size, head_dim)
    products = (query @ key.mT).unflatten(3, (group, size)).tril()
    if where is None:
        sums = torch.cat((before.sums[:, :, None], key.mT @ value), dim=2).cumsum(dim=2)
        # a copy, since the state would keep those of all chunks alive
        entering, after = sums[:, :, :-1], State(sums[:, :, -1].clone(), before.document)
    else:
        document = cut(where.document[..., None], size).squeeze(-1)
        last = last_documents(where, size, before)
        reads, adds = ((document == which[..., None])[:, None, ..., None] for which in (last[:, :-1], last[:, 1:]))
        products = products * (document[..., :, None] == document[..., None, :])[:, None, :, None]
        query = query * reads.repeat(1, 1, 1, group, 1)
        entering, after = carried(before, (key * adds).mT @ value, last)
    sums = products.flatten(3, 4) @ value + query @ entering
    return sums.unflatten(3, (group, size)).transpose(2, 3).flatten(3, 4)[..., :length, :], after


def cut(x: Tensor, size: int) -> Tensor:
    """(..., length, width) -> (..., chunks, size, width), zeros after the end."""
    return F.pad(x, (0, 0, 0, -x.size(-2) % size)).unflatten(-2, (-1, size))


def last_documents(where: Where, size: int, before: State) -> Tensor:
    """The document of the last token that is there before each chunk, and after the last: (batch, chunks + 1).

    A document's tokens stand together, so it is the only one that the next token can go on with.
    """
    count = torch.arange(1, where.position.size(1) + 1, device=before.document.device)
    latest = cut(count.where(where.position >= 0, 0)[..., None], size).amax(dim=(2, 3)).cummax(dim=1).values
    documents = torch.cat((before.document[:, None], where.document), dim=1)
    return documents.gather(1, F.pad(latest, (1, 0)))


def carried(before: State, own: Tensor, last: Tensor) -> tuple[Tensor, State]:
    """The sums that enter each chunk, (batch, n_kv_head, chunks, head_dim, head_dim + 1), and the state after all.

    They are of the last document alone: where another has begun, what was carried is dropped. `own` are those of each
    chunk's tokens of the document that is last in it.
    """
    goes_on = (last[:, 1:] == last[:, :-1])[:, None, None, None]
    sums = [before.sums]
    for index, added in enumerate(own.unbind(2)):
        sums.append(sums[-1] * goes_on[..., index] + added)
    return torch.stack(sums[:-1], dim=2), State(sums[-1], last[:, -1].clone())
