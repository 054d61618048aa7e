"""How a model sees texts that grow: all that there is at first, then one token a step.

An *endless* model (relative positions, and in each layer an attention whose memory does not grow and that forgets, so
that it weighs neither more tokens nor farther ones than training showed) sees each token once, and text beyond its
context as text within: `Reader`. For others each row has a *window*: the tokens that the model
attends to, at positions 0, 1, ... of the row. When a window that is as long as the context has to take one more token,
its oldest quarter is dropped, and what remains is prefilled anew with positions from 0: `Windows`. Keys and values that
were computed with the dropped tokens in sight cannot be kept: they still carry them, and where positions are learned
they stand at the wrong place. Prefilling for every token (as nanoGPT does) costs O(context) a token; dropping a quarter
pays one prefill for each context/4 tokens, so O(1) prefilled tokens each.

Rows of different lengths are padded on the left. All rows of a batch share the slots of one cache, so when those are
used up by the longest row, all windows are prefilled again, but each one drops tokens only by its own length.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from gpt.generation.decoder import Decoder
from gpt.model.cache import Cache
from gpt.model.gpt import GPT
from gpt.model.mask import Where


class Reader:
    """Shows the model each token once, and keeps none of them: the cache holds what is to be remembered.

    Args:
        model: sees the rows.
        rows: the prompts' ids, one list per row.
        max_new_tokens: how many tokens will be appended; the cache is no longer than that needs.
        decoder: sees all tokens but the prompts; None: the model as it is.
    """

    def __init__(self, model: GPT, rows: list[list[int]], max_new_tokens: int, decoder: Decoder | None = None) -> None:
        self.model = model
        self.decoder = decoder or Decoder(model)
        self.unseen = pad_left(rows, model.embedding.weight.device)  # (rows, width)
        self.where = where_padded([len(row) for row in rows], self.unseen.device)
        self.capacity = self.unseen.size(1) + max_new_tokens
        self.cache: Cache | None = None

    def logits(self) -> Tensor:
        """(rows, vocab_size) of the token after all that there are; to be called once for each length."""
        if self.cache is None:
            logits, self.cache = prefill(self.model, self.unseen, self.where, self.decoder.room(self.capacity))
        else:
            logits = self.decoder(self.unseen, self.where, self.cache)
        self.where = following(self.where)
        return logits

    def append(self, token: Tensor) -> None:
        """Add (rows,) tokens, one to each row."""
        self.unseen = token[:, None]


class Windows(Reader):
    """A reader in windows of the model's context: it keeps their tokens, to show them again when they slid."""

    def __init__(self, model: GPT, rows: list[list[int]], max_new_tokens: int, decoder: Decoder | None = None) -> None:
        super().__init__(model, rows, max_new_tokens, decoder)
        self.pieces = [self.unseen]
        self.lengths = [len(row) for row in rows]
        self.capacity = min(self.capacity, model.config.context)

    def logits(self) -> Tensor:
        """As `Reader`, of the token after each window."""
        if self.cache is not None and self.cache.length == self.capacity:
            self._slide()
        return super().logits()

    def append(self, token: Tensor) -> None:
        """Add (rows,) tokens, one to each window."""
        super().append(token)
        self.pieces.append(self.unseen)
        self.lengths = [length + 1 for length in self.lengths]

    def _slide(self) -> None:
        context = self.model.config.context
        self.lengths = [slid(length, context) for length in self.lengths]
        self.unseen = torch.cat(self.pieces, dim=1)[:, -max(self.lengths) :]
        self.pieces = [self.unseen]
        self.where = where_padded(self.lengths, self.unseen.device)
        self.cache = None


def slid(length: int, context: int) -> int:
    """The length of a window after it slid: a quarter of the context less where it has outgrown the context.

    >>> slid(8, context=8), slid(9, context=8)
    (8, 7)
    """
    return length if length <= context else length - max(1, context // 4)


def prefill(model: GPT, tokens: Tensor, where: Where | None, capacity: int) -> tuple[Tensor, Cache]:
    """See (rows, width) tokens at once: (rows, vocab_size) logits after the last ones, and their cache."""
    cache = model.build_cache(capacity)
    hidden = model.hidden(tokens, where, cache)
    return model.logits(hidden[:, -1]), cache


def pad_left(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Rows of different lengths as (rows, longest) int64, 0 where nothing is."""
    width = max(map(len, rows))
    return torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)


def where_padded(lengths: Sequence[int], device: torch.device) -> Where | None:
    """Where the tokens of left-padded rows are, (rows, longest); None, the fast path, where all are full."""
    width = max(lengths)
    if min(lengths) == width:
        return None
    padding = torch.tensor([width - length for length in lengths], device=device)
    position = (torch.arange(width, device=device) - padding[:, None]).clamp(min=-1)
    return Where(position, torch.zeros_like(position))


def following(where: Where | None) -> Where | None:
    """Where each row's next token is: (rows, 1)."""
    return None if where is None else Where(where.position[:, -1:] + 1, where.document[:, -1:])
