"""Token ids -> more token ids: the prompts are read, then one token a step is drawn and read.

A batch holds rows of different lengths and gives each row what it gets alone.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import torch
from torch import Tensor, nn

from gpt.config import UserError
from gpt.generation.decoder import Decoder
from gpt.generation.reader import Reader, Windows
from gpt.generation.sampler import next_token, uniforms
from gpt.generation.settings import GenerationSettings, Overflow
from gpt.model.gpt import GPT

NOTHING = -1
"""In place of a token: the row has ended, its window being full."""


def generate(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    settings: GenerationSettings,
    vocab_size: int,
    decoder: Decoder | None = None,
) -> Generator[Tensor]:
    """Continue each prompt `num_samples` times; the samples of a prompt are neighbouring rows.

    The model is put in evaluation mode, and back when the iterator ends or is closed: close it to end early.

    Args:
        model: continues the prompts, on its own device.
        prompts: token ids, of any lengths from 1 to `prompt_limit` (`crop` makes longer ones fit).
        settings: number of tokens, sampling, and what happens past the context. `stop` is text, and not seen
            here.
        vocab_size: the tokenizer's; the model's table may have more rows, but those ids are never chosen.
        decoder: sees all tokens but the prompts; None: the model as it is.

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
    check(prompts, prompt_limit(model, settings.overflow), table)
    rows = [list(prompt) for prompt in prompts for _ in range(settings.num_samples)]
    return _steps(model, rows, settings, vocab_size, decoder)


def prompt_limit(model: GPT, overflow: Overflow) -> int | None:
    """The most tokens that a prompt may have: the context; None, any number, where the model reads on beyond it."""
    return None if model.endless and overflow == "slide" else model.config.context


def refuse_overflow(prompts: Sequence[Sequence[int]], max_new_tokens: int, context: int) -> None:
    """Raise UserError where a prompt and `max_new_tokens` do not fit into the context together."""
    for number, prompt in enumerate(prompts, 1):
        if len(prompt) + max_new_tokens > context:
            raise UserError(
                f"overflow=error: prompt {number} of {len(prompts)}, of {len(prompt)} tokens, and "
                f"max_new_tokens={max_new_tokens} exceed the model's context of {context}; shorten one of them, or "
                "take overflow=slide or overflow=stop"
            )


def check(prompts: Sequence[Sequence[int]], limit: int | None, vocab_size: int) -> None:
    """Raise ValueError for a prompt that the model cannot take."""
    if not prompts:
        raise ValueError("there is no prompt")
    for index, prompt in enumerate(prompts):
        if not prompt:
            raise ValueError(f"prompt {index} has no token")
        if limit is not None and len(prompt) > limit:
            raise ValueError(f"prompt {index} has {len(prompt)} tokens, more than the context of {limit}")
        if not 0 <= min(prompt) <= max(prompt) < vocab_size:
            wrong = next(token for token in prompt if not 0 <= token < vocab_size)
            raise ValueError(f"prompt {index} has the token id {wrong}, not below the vocabulary {vocab_size}")


def crop(prompts: Sequence[Sequence[int]], limit: int | None, overflow: Overflow) -> tuple[list[list[int]], list[str]]:
    """The last `limit` tokens of each prompt, None: all; and a sentence about each prompt that lost some."""
    what = "nothing is written after it; overflow=slide goes on" if overflow == "stop" else "its first {} are left out"
    if limit is None:
        return [list(prompt) for prompt in prompts], []
    notices = [
        f"prompt {number} of {len(prompts)} has {len(prompt)} tokens, the model's context is {limit}: "
        + what.format(len(prompt) - limit)
        for number, prompt in enumerate(prompts, 1)
        if len(prompt) > limit
    ]
    return [list(prompt[-limit:]) for prompt in prompts], notices


@torch.inference_mode()
def _steps(
    model: GPT, rows: list[list[int]], settings: GenerationSettings, vocab_size: int, decoder: Decoder | None
) -> Generator[Tensor]:
    """`generate` for checked rows."""
    texts = (Reader if model.endless else Windows)(model, rows, settings.max_new_tokens, decoder)
    room = [model.config.context - len(row) for row in rows]
    wanted = settings.max_new_tokens
    counts = [min(wanted, free) if settings.overflow == "stop" else wanted for free in room]
    ends, together = torch.tensor(counts, device=texts.unseen.device), min(counts) == max(counts)
    seen = tokens_in(rows, vocab_size, ends.device) if settings.repetition_penalty != 1 else None
    samples = [row % settings.num_samples for row in range(len(rows))]
    numbers = islice(uniforms(settings.seed, samples, ends.device), max(counts))
    with evaluation_mode(model):
        for step, uniform in enumerate(numbers):
            token = next_token(texts.logits()[:, :vocab_size], uniform, settings, seen)
            texts.append(token)
            if seen is not None:
                seen.scatter_(1, token[:, None], True)
            yield token if together else token.where(step < ends, NOTHING)


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
