"""Token ids -> more token ids: prefill the prompt, then decode one token a step.

Each row has a *window*: the tokens that the model attends to, at positions 0, 1, ... of the row. When a
window that is as long as the context has to take one more token, its oldest quarter is dropped, and what
remains is prefilled anew with positions from 0. Keys and values that were computed with the dropped tokens in
sight cannot be kept: they still carry them, and where positions are learned they stand at the wrong place.
Prefilling for every token (as nanoGPT does) costs O(context) a token; dropping a quarter pays one prefill for
each context/4 tokens, so O(1) prefilled tokens each.

A batch holds rows of different lengths, padded on the left, and gives each row what it gets alone. All rows
of a batch share the slots of one cache, so when those are used up by the longest row, all rows are prefilled
again, but each one drops tokens only by its own length.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import torch
from torch import Tensor, nn

from gpt.config import UserError
from gpt.generation.sampler import next_token, uniforms
from gpt.generation.settings import GenerationSettings
from gpt.model.cache import Cache
from gpt.model.gpt import GPT
from gpt.model.mask import Where

NOTHING = -1
"""In place of a token: the row has ended, its window being full."""


def generate(
    model: GPT, prompts: Sequence[Sequence[int]], settings: GenerationSettings, vocab_size: int
) -> Generator[Tensor]:
    """Continue each prompt `num_samples` times; the samples of a prompt are neighbouring rows.

    The model is put in evaluation mode, and back when the iterator ends or is closed: close it to end early.

    Args:
        model: continues the prompts, on its own device.
        prompts: token ids, of any lengths from 1 to the model's context (`crop` makes longer ones fit).
        settings: number of tokens, sampling, and what happens past the context. `stop` is text, and not seen
            here.
        vocab_size: the tokenizer's; the model's table may have more rows, but those ids are never chosen.

    Yields:
        (rows,) int64 on the model's device, the step's tokens; `NOTHING` for a row whose window is full
        (overflow=stop). Nothing is read back from the device.

    Raises:
        UserError: overflow=error, and a prompt with `max_new_tokens` more does not fit into the context.
        ValueError: no prompt, an empty or too long one, or an id or vocabulary that the model does not have.
    """
    table = model.embedding.num_embeddings
    if not 1 <= vocab_size <= table:
        raise ValueError(f"vocab_size {vocab_size} is not between 1 and the model's {table}")
    if settings.overflow == "error":
        refuse_overflow(prompts, settings.max_new_tokens, model.config.context)
    check(prompts, model.config.context, table)
    rows = [list(prompt) for prompt in prompts for _ in range(settings.num_samples)]
    return _steps(model, rows, settings, vocab_size)


def refuse_overflow(prompts: Sequence[Sequence[int]], max_new_tokens: int, context: int) -> None:
    """Raise UserError where a prompt and `max_new_tokens` do not fit into the context together."""
    longest = max(map(len, prompts), default=0)
    if longest + max_new_tokens > context:
        raise UserError(
            f"overflow=error: a prompt of {longest} tokens and max_new_tokens={max_new_tokens} exceed the "
            f"model's context of {context}; shorten one of them, or take overflow=slide or overflow=stop"
        )


def check(prompts: Sequence[Sequence[int]], context: int, vocab_size: int) -> None:
    """Raise ValueError for a prompt that the model cannot take."""
    if not prompts:
        raise ValueError("there is no prompt")
    for index, prompt in enumerate(prompts):
        if not 1 <= len(prompt) <= context:
            raise ValueError(f"prompt {index} has {len(prompt)} tokens, not between 1 and the context {context}")
        if not 0 <= min(prompt) <= max(prompt) < vocab_size:
            wrong = next(token for token in prompt if not 0 <= token < vocab_size)
            raise ValueError(f"prompt {index} has the token id {wrong}, not below the vocabulary {vocab_size}")


def crop(prompts: Sequence[Sequence[int]], context: int) -> tuple[list[list[int]], list[str]]:
    """The last `context` tokens of each prompt, and a sentence about each prompt that lost some."""
    notices = [
        f"prompt {number} of {len(prompts)} has {len(prompt)} tokens, the model's context is {context}: "
        f"its first {len(prompt) - context} are left out"
        for number, prompt in enumerate(prompts, 1)
        if len(prompt) > context
    ]
    return [list(prompt[-context:]) for prompt in prompts], notices


@torch.inference_mode()
def _steps(model: GPT, rows: list[list[int]], settings: GenerationSettings, vocab_size: int) -> Generator[Tensor]:
    """`generate` for checked rows."""
    windows = Windows(model, rows, settings.max_new_tokens)
    room = [model.config.context - len(row) for row in rows]
    wanted = settings.max_new_tokens
    counts = [min(wanted, free) if settings.overflow == "stop" else wanted for free in room]
    ends = torch.tensor(counts, device=windows.tokens.device)
    seen = tokens_in(rows, vocab_size, ends.device) if settings.repetition_penalty != 1 else None
    samples = [row % settings.num_samples for row in range(len(rows))]
    numbers = islice(uniforms(settings.seed, samples, ends.device), max(counts))
    with evaluation_mode(model):
        for step, uniform in enumerate(numbers):
            token = next_token(windows.logits()[:, :vocab_size], uniform, settings, seen)
            windows.append(token)
            if seen is not None:
                seen.scatter_(1, token[:, None], True)
            yield token.where(step < ends, NOTHING)


class Windows:
    """The windows of all rows, and the cache of what the model has seen of them.

    Args:
        model: whose context bounds the windows.
        rows: the prompts' ids, one list per row.
        max_new_tokens: how many tokens will be appended; the cache is no longer than that needs.
    """

    def __init__(self, model: GPT, rows: list[list[int]], max_new_tokens: int) -> None:
        self.model = model
        self.lengths = [len(row) for row in rows]
        self.tokens = pad_left(rows, model.embedding.weight.device)  # (rows, width)
        self.capacity = min(self.tokens.size(1) + max_new_tokens, model.config.context)
        self.cache: Cache | None = None
        self.where: Where | None = None

    def logits(self) -> Tensor:
        """(rows, vocab_size) of the token after each window; to be called once for each length."""
        if self.cache is None or self.cache.length == self.capacity:
            self._slide()
            self.where = where_padded(self.lengths, self.tokens.device)
            logits, self.cache = prefill(self.model, self.tokens, self.where, self.capacity)
        else:
            logits = decode(self.model, self.tokens[:, -1:], self.where, self.cache)
        self.where = following(self.where)
        return logits

    def append(self, token: Tensor) -> None:
        """Add (rows,) tokens, one to each window."""
        self.tokens = torch.cat((self.tokens, token[:, None]), dim=1)
        self.lengths = [length + 1 for length in self.lengths]

    def _slide(self) -> None:
        context = self.model.config.context
        self.lengths = [slid(length, context) for length in self.lengths]
        self.tokens = self.tokens[:, -max(self.lengths) :]


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


def decode(model: GPT, token: Tensor, where: Where | None, cache: Cache) -> Tensor:
    """See one more token, (rows, 1), after those in the cache: (rows, vocab_size) logits."""
    return model.logits(model.hidden(token, where, cache)[:, -1])


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


def tokens_in(rows: Sequence[Sequence[int]], vocab_size: int, device: torch.device) -> Tensor:
    """(rows, vocab_size) bool: which tokens stand in each row."""
    seen = torch.zeros(len(rows), vocab_size, dtype=torch.bool)
    for row, ids in zip(seen, rows, strict=True):
        row[[token for token in ids if token < vocab_size]] = True
    return seen.to(device)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Dropout off, and afterwards every module in the mode that it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
