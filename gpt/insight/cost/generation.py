"""A small model writes a long text through its cache, token by token: does a token take longer, the more there are?"""

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from gpt.contention import DISTURBED, foreign_share, read
from gpt.insight.bench.race import Rules, rotated
from gpt.insight.cost.costs import Generation
from gpt.model.gpt import GPT
from gpt.peak import synchronize


class Text(NamedTuple):
    """A text that was written."""

    disturbed: float
    """The share of the processor that others used meanwhile; 0 where that is not known."""
    seconds: list[float]
    """Of each token."""
    cache: int
    """Bytes of all layers' memories at the end."""


def generate_long(
    models: Sequence[GPT], tokens: int, rules: Rules, advance: Callable[[float], None]
) -> list[Generation]:
    """Have each model write a text of `tokens` tokens, several times, in turn.

    Args:
        models: of different attentions.
        tokens: of a text.
        rules: how often, and how often again where others disturb.
        advance: is told after each text what part of the work it was; the parts add up to 1.
    """
    texts: dict[str, list[Text]] = {model.config.attention.name: [] for model in models}
    for repeat in range(rules.repeats):
        for model in rotated(models, repeat):
            texts[model.config.attention.name].append(undisturbed(model, tokens, rules.redos))
            advance(1 / (rules.repeats * len(models)))
    return [Generation(name, [text.seconds for text in written], written[-1].cache) for name, written in texts.items()]


def undisturbed(model: GPT, tokens: int, redos: int) -> Text:
    """The first text that others did not disturb, or after the last try the one that they disturbed least."""
    tries: list[Text] = []
    while len(tries) <= redos and not (tries and tries[-1].disturbed <= DISTURBED):
        tries.append(write(model, tokens))
    return min(tries)


def write(model: GPT, tokens: int) -> Text:
    """The most likely tokens after token 0."""
    device = model.embedding.weight.device
    cache, token = model.build_cache(tokens), torch.zeros(1, 1, dtype=torch.int64, device=device)
    seconds = []
    before = read()
    for _ in range(tokens):
        start = time.perf_counter()
        with torch.inference_mode():
            token = model(token, cache=cache).argmax(dim=-1)
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return Text(foreign_share(before, read(), os.cpu_count() or 1) or 0.0, seconds, cache.nbytes())
