r"""Logits -> the next token.

The order is Hugging Face's: repetition penalty (Keskar et al. 2019, arXiv:1909.05858), temperature, top-k
(Fan et al. 2018, arXiv:1805.04833), top-p (Holtzman et al. 2020, arXiv:1904.09751), min-p (Nguyen et al.
2024, arXiv:2407.01082). What is left is drawn by inverting its cumulative distribution at a uniform number
`u`: the first token at which the running sum of probabilities exceeds `u` times their total.

Each row and step takes exactly one `u`, from a stream that is fixed by the seed and the index of the sample.
So the third sample of a prompt is the same text however many are drawn beside it, in a batch of any size, on
any device, except where rounding moves a running sum across the number drawn.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from gpt.config import Config

BLOCK = 256
"""Uniform numbers drawn at a time for each row: one transfer to the device per so many tokens."""


class SamplerSettings(Config):
    """How the next token is chosen."""

    temperature: float = Field(0.8, ge=0)
    """Divides the logits: below 1 more predictable, above 1 more surprising; 0 takes the likeliest token."""

    top_k: int = Field(50, ge=0)
    """Draw from this many likeliest tokens only; 0 draws from all."""

    top_p: float = Field(1.0, gt=0, le=1)
    """Draw from the fewest likeliest tokens whose probabilities add up to this share; 1 draws from all."""

    min_p: float = Field(0.0, ge=0, le=1)
    """Leave out tokens less likely than this share of the likeliest one's probability; 0 leaves out none."""

    repetition_penalty: float = Field(1.0, ge=0.01, le=100)
    """Above 1, tokens that stand in the text already become less likely; 1 changes nothing."""

    seed: int = Field(1337, ge=0, lt=1 << 63)
    """The same seed gives the same texts; sample number i of a prompt depends on the seed and i alone."""


def uniforms(seed: int, samples: Sequence[int], device: torch.device) -> Iterator[Tensor]:
    """Yield, step by step and without end, each row's number in [0, 1): (rows,) fp32 on `device`.

    Args:
        seed: the seed of all samples.
        samples: each row's index among the samples of its prompt.
        device: where the numbers are needed.
    """
    generators = [np.random.default_rng([seed, index]) for index in samples]
    while True:
        block = np.stack([generator.random(BLOCK, dtype=np.float32) for generator in generators])
        yield from torch.from_numpy(block).to(device).unbind(1)


def next_token(logits: Tensor, uniform: Tensor, settings: SamplerSettings, seen: Tensor | None = None) -> Tensor:
    """Choose each row's next token; nothing is read back from the device.

    Args:
        logits: (rows, vocabulary), of any floating dtype.
        uniform: (rows,) in [0, 1), what `uniforms` yields for this step.
        settings: temperature, filters and penalty.
        seen: (rows, vocabulary) bool, True for the tokens in the row's text so far; needed for a penalty
            only.

    Returns:
        (rows,) token ids.
    """
    if seen is not None:
        logits = penalize(logits.float(), seen, settings.repetition_penalty)
    if settings.temperature == 0:
        return logits.argmax(-1)
    logits = logits.float()
    ranked, ids = rank(logits, settings)
    probabilities = scale(ranked, settings.temperature).softmax(-1)
    if settings.top_p < 1:
        probabilities = keep_top_p(probabilities, settings.top_p)
    if settings.min_p > 0:
        probabilities = keep_min_p(probabilities, settings.min_p)
    index = draw(probabilities, uniform)
    return index if ids is None else ids.gather(-1, index[:, None])[:, 0]


def penalize(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Divide the positive logits of seen tokens by `penalty` and multiply their negative ones by it."""
    return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def rank(logits: Tensor, settings: SamplerSettings) -> tuple[Tensor, Tensor | None]:
    """The top-k logits, likeliest first, and their ids; the logits as they are and None where order is idle.

    Dividing by the temperature does not change who is among the first k, so it can wait until fewer are left.
    """
    if 0 < settings.top_k < logits.shape[-1]:
        # Comparing with the k-th largest logit would keep more than k on ties; topk's indices are exactly k.
        return logits.topk(settings.top_k)
    if settings.top_p < 1:
        return logits.sort(descending=True, stable=True)
    return logits, None


def scale(logits: Tensor, temperature: float) -> Tensor:
    """Divide by a temperature above 0, however small: the largest becomes 0 first, so nothing overflows."""
    tiny = torch.finfo(logits.dtype).tiny
    return (logits - logits.amax(-1, keepdim=True)) / max(temperature, tiny)


def keep_top_p(probabilities: Tensor, top_p: float) -> Tensor:
    """Zero each token before which `top_p` is reached already: (rows, n), likeliest first, which stays."""
    before = probabilities.cumsum(-1) - probabilities
    return probabilities.where(before < top_p, 0)


def keep_min_p(probabilities: Tensor, min_p: float) -> Tensor:
    """Zero each token below `min_p` times the row's largest: a ratio, so they need not add up to 1."""
    return probabilities.where(probabilities >= min_p * probabilities.amax(-1, keepdim=True), 0)


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The index where the running sum of (rows, n) weights passes `uniform` (rows,) times their total."""
    # A parallel running sum need not be monotone to the last bit: where a weight is 0 it is not looked at.
    reached = probabilities.cumsum(-1).where(probabilities > 0, 0)
    target = uniform[:, None] * reached.amax(-1, keepdim=True)
    return (reached > target).int().argmax(-1)
