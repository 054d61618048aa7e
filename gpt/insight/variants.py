"""Attention variants as studies compare them: all in the folder, with one set of settings, each in its own colour."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any, NamedTuple

from gpt.config import variant_class, variant_names

PACKAGE = "gpt.model.attention"


class Style(NamedTuple):
    """How a variant is drawn."""

    color: str
    marker: str
    linestyle: str = "-"


STYLES = (
    ("sdpa", Style("#2f6690", "o")),
    ("reference", Style("#8d99ae", "s", "--")),
    ("sliding_window", Style("#c8553d", "^")),
    ("sparse", Style("#d8a137", "D")),
    ("linear", Style("#4f8f6f", "v")),
)
"""Of the variants that come with the project."""

OTHERS = (Style("#7b5ea7", "P"), Style("#3a9ea5", "X"), Style("#a0526d", "*"))
"""Of variants that were added, in turn."""


def configured(name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A variant as a configuration takes it, with those of the settings `wanted` that it has.

    >>> configured("sliding_window", {"window": 8, "sinks": 1, "stride": 4})
    {'name': 'sliding_window', 'window': 8, 'sinks': 1}
    """
    fields = variant_class(PACKAGE, name).model_fields
    return {"name": name, **{key: value for key, value in wanted.items() if key in fields}}


def styles() -> dict[str, dict[str, Any]]:
    """How each variant in the folder is drawn, as matplotlib takes it."""
    known, others = dict(STYLES), cycle(OTHERS)
    return {name: (known.get(name) or next(others))._asdict() for name in variant_names(PACKAGE)}
