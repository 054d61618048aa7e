"""A model's parameters, counted by part."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from gpt.model.gpt import GPT

PARTS: Mapping[str, str] = {
    "*norm.*": "norms",
    "embedding.*": "embedding",
    "position.*": "position",
    "*.attention.*": "attention",
    "*.feedforward.*": "feedforward",
    "head.*": "head",
}
"""A part by a pattern of its parameters' names; the first that matches counts."""


class Count(NamedTuple):
    """How many parameters."""

    total: int
    trained: int
    """Of these, that are not frozen."""


def by_part(model: GPT) -> dict[str, Count]:
    """The parameters of each part, each once: a head that is tied is the embedding's, and has none of its own.

    A variant's own parameters that no pattern names are "other".
    """
    counts = dict.fromkeys(("embedding", "position", "attention", "feedforward", "norms", "head"), Count(0, 0))
    for name, parameter in model.named_parameters():
        part = next((part for pattern, part in PARTS.items() if fnmatchcase(name, pattern)), "other")
        total, trained = counts.get(part, Count(0, 0))
        counts[part] = Count(total + parameter.numel(), trained + parameter.numel() * parameter.requires_grad)
    return counts
