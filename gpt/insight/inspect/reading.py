"""A prompt, read by a run's model: all that is shown of it, in the terminal, in the pictures and on the page."""

import math
from dataclasses import dataclass

from torch import Tensor

from gpt.generation.text import encode_prompt
from gpt.insight.inspect.heads import Heads, measure
from gpt.insight.inspect.labels import next_label, token_labels
from gpt.insight.inspect.observe import observe
from gpt.insight.inspect.settings import InspectSettings
from gpt.insight.inspect.surprise import Mean, likeliest, mean, surprises
from gpt.model.gpt import GPT
from gpt.run import Run

MOST_TOKENS = 1024
"""A longer text's weights are no picture any more."""

MOST_WEIGHTS = 1 << 24
"""Of all heads together, half of a square each: what a browser opens in a moment."""


@dataclass(frozen=True)
class Reading:
    """What was seen."""

    text: str
    """What was read."""
    run: str
    """Which weights they are, and where they compute."""
    attention: str
    """What attends, and by what."""
    notices: list[str]
    """Sentences about what is not shown."""
    labels: list[str]
    """Of each token."""
    bits: list[float | None]
    """Surprise of each token."""
    mean: Mean | None
    """None where no token has a surprise."""
    next: list[tuple[str, float]]
    """Labels and probabilities of the tokens that may come next, the likeliest first."""
    weights: list[Tensor]
    """(n_head, length, length) of each layer, fp32."""
    heads: Heads


def read(run: Run, settings: InspectSettings) -> Reading:
    """Have the run's model read the prompt.

    Raises:
        UserError: a character that the tokenizer does not know, or nothing to start from.
    """
    tokenizer = run.tokenizer
    ids = encode_prompt(tokenizer, settings.prompt, settings.unknown)
    kept, notices = fitted(run.model, len(ids))
    labels = token_labels(tokenizer, ids)[-kept:]  # of the whole: a cut may go through a character
    ids = ids[-kept:]
    seen = observe(run.model, ids)
    logits = seen.logits[:, : tokenizer.vocab_size]  # the table may have more rows, which are never chosen
    bits = surprises(logits, ids)
    return Reading(
        text=tokenizer.decode(ids),
        run=run.describe(),
        attention=attention(run.model),
        notices=notices,
        labels=labels,
        bits=bits,
        mean=mean(bits, [len(tokenizer.decode_bytes([i])) for i in ids]),
        next=[(next_label(tokenizer, i), p) for i, p in likeliest(logits[-1], settings.top)],
        weights=seen.weights,
        heads=measure(seen.weights),
    )


def fitted(model: GPT, length: int) -> tuple[int, list[str]]:
    """How many of a text's last tokens are read, and a sentence where that is not all."""
    heads = model.config.n_layer * model.config.n_head
    shown = min(MOST_TOKENS, max(1, math.isqrt(2 * MOST_WEIGHTS // heads)))
    context = length if model.endless else model.config.context
    kept = min(length, shown, context)
    if kept == length:
        return kept, []
    why = f"the model's context is {context:,}" if context <= shown else f"of {heads} heads no more can be shown"
    return kept, [f"the prompt has {length:,} tokens, {why}: its first {length - kept:,} are left out"]


def attention(model: GPT) -> str:
    """What attends, and by what."""
    c, weight = model.config, model.embedding.weight
    by = dict.fromkeys(attention.describe(weight.device, weight.dtype) for attention in model.attentions)
    shared = "" if c.kv_heads == c.n_head else f" over {c.kv_heads} of keys and values"
    return f"{c.n_layer} layers of {c.n_head} heads{shared}; {c.attention.name} ({', '.join(by)}), {c.position.name}"
