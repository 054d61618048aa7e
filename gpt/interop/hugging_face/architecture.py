"""A public architecture: which of our models it can hold, and its settings and weights beside ours, as tables."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from torch import nn

from gpt.config import UserError, leaves, shown
from gpt.interop.naming import Row
from gpt.model.block import Block
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

Kind = Literal["gpt2", "llama", "qwen3"]

EXACT = ("sdpa", "reference")
"""Attention variants in which each token sees all before it."""


class Size(NamedTuple):
    """A setting that ours and theirs have alike."""

    ours: str
    """Its dotted path below `model`."""
    default: Any
    """Theirs, where a folder does not say."""


class Architecture:
    """One architecture; a subclass fills the tables."""

    kind: ClassVar[Kind]
    """Its model_type."""
    class_name: ClassVar[str]
    """The class of transformers that opens it."""
    base: ClassVar[str]
    """How the names of all weights but the head's begin; some folders leave it out."""
    parts: ClassVar[Mapping[str, tuple[Any, ...]]]
    """Settings of ours, and the values of them that it can hold; the first is what is read."""
    always: ClassVar[Mapping[str, Any]]
    """Settings of ours that it always has so; a model without holds the same by gains of 1 and biases of 0."""
    sizes: ClassVar[Mapping[str, Size]]
    """By their name."""
    fixed: ClassVar[Mapping[str, Any]]
    """Settings of theirs that must be so, and are where a folder does not say."""
    rows: ClassVar[tuple[Row, ...]]
    """Whose weights are whose."""

    def obstacles(self, model: GPT) -> list[str]:
        """What of a model's settings it cannot hold, as path=value."""
        found = resolved(model)
        wrong = [path for path, values in self.parts.items() if found[path] not in values]
        return [f"model.{path}={shown(found[path])}" for path in (*wrong, *self.limits(model.config))]

    def limits(self, config: GPTConfig) -> list[str]:
        """Paths of settings that are in the way, by more than one value alone."""
        return []

    def equivalent(self, config: GPTConfig) -> GPTConfig:
        """The configuration with all that the architecture always has."""
        return config.model_copy(update=dict(self.always))

    def settings(self, model: GPT) -> dict[str, Any]:
        """Its settings of our model; no token begins or ends a text in them."""
        found = resolved(model)
        sizes = {theirs: found[size.ours] for theirs, size in self.sizes.items()}
        return {**sizes, **self.fixed, **self.written(model), "bos_token_id": None, "eos_token_id": None}

    def written(self, model: GPT) -> dict[str, Any]:
        """More of its settings, which the tables do not tell."""
        return {}

    def configured(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """Our settings of their model, as plain data that `GPTConfig` has yet to check.

        Raises:
            UserError: it is one that ours cannot be.
        """
        for name, value in self.fixed.items():
            if theirs.get(name, value) != value:
                raise refused(name, theirs[name], shown(value))
        ours = {path: values[0] for path, values in self.parts.items()} | dict(self.always)
        ours |= {size.ours: theirs.get(name, size.default) for name, size in self.sizes.items()}
        return nested(ours | self.read(theirs))

    def read(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """More of our settings, by path, which the tables do not tell.

        Raises:
            UserError: as of `configured`.
        """
        return {}


def refused(name: str, value: Any, known: str) -> UserError:
    """What is said of a setting that ours cannot be."""
    return UserError(f"{name} is {shown(value)}, which no model here has; {known} can be read")


def resolved(model: GPT) -> dict[str, Any]:
    """The settings of a model by dotted path, nulls in the place of which a size stands resolved."""
    c = model.config
    sizes = {"n_kv_head": c.kv_heads, "head_dim": c.head_size, "feedforward.hidden": hidden_width(model)}
    return leaves(c.model_dump()) | sizes


def hidden_width(model: GPT) -> int:
    """Width inside the feedforward, resolved."""
    block = model.blocks[0]
    assert isinstance(block, Block), f"{type(block).__name__} is no block"
    output = block.feedforward.output
    assert isinstance(output, nn.Linear), f"{type(output).__name__} is no matrix"
    return output.in_features


def nested(by_path: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted path as mappings in one another.

    >>> nested({"a.b": 1, "a.c": 2, "d": 3})
    {'a': {'b': 1, 'c': 2}, 'd': 3}
    """
    found: dict[str, Any] = {}
    for path, value in by_path.items():
        *parents, last = path.split(".")
        there = found
        for key in parents:
            there = there.setdefault(key, {})
        there[last] = value
    return found
