"""What each attention variant costs as the text grows: time and memory of training and of decoding.

    training    one layer's `attend` on given queries, keys and values of T tokens, forward and backward
    decoding    the same for one token after T - 1 others, and the bytes of the memory that holds them

In theory, for a window of w tokens and columns a stride of s apart:

                     training                decoding, time and memory
    all tokens       O(T²)                   O(T)
    window           O(T · w)                O(w)
    columns          O(T · (w + T / s))      O(w + T / s)
    running state    O(T)                    O(1)
"""

from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from gpt.config import UserError, parse, variant_names
from gpt.device import DTYPES
from gpt.insight.bench.race import Rules
from gpt.insight.cost.costs import Costs, Heads
from gpt.insight.cost.generation import generate_long
from gpt.insight.cost.measure import Measuring, partly
from gpt.insight.cost.page import BASE, findings
from gpt.insight.cost.work import Inputs, filled
from gpt.insight.study import Context, Findings, Study, StudyConfig
from gpt.insight.variants import PACKAGE, configured
from gpt.model.config import GPTConfig, Size
from gpt.model.gpt import GPT

Length = Annotated[int, Field(ge=2, le=1 << 22)]

LARGE = 4096
"""Tokens from which on the work itself takes longer than a measurement lasts at least."""

WRITING = 4.0
"""The share of a progress bar that writing long texts takes: about four times what the smallest length does."""


class ComplexityConfig(StudyConfig):
    """Time and memory of each attention variant against the length, in training and in decoding."""

    name: Literal["complexity"] = "complexity"
    lengths: list[Length] = Field([256, 512, 1024, 2048, 4096, 8192, 16384, 32768], min_length=1)
    """Tokens of the texts."""
    fit: list[Length] = Field([4096, 8192, 16384, 32768])
    """Lengths that exponents are fitted over; where fewer than two of them were measured, all that were."""
    n_head: Size = 4
    """Query heads."""
    n_kv_head: Size = 4
    """Key and value heads, a divisor of n_head."""
    head_dim: Size = Field(64, multiple_of=2)
    """Width of a head."""
    window: Size = 256
    """Tokens of it, for the variants that have one."""
    sinks: int = Field(4, ge=0, le=1 << 20)
    """First tokens that stay visible, likewise."""
    stride: Size = 256
    """Tokens from one column to the next, likewise."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Of queries, keys and values."""
    repeats: PositiveInt = 5
    """Measurements of each time; the median counts."""
    min_seconds: PositiveFloat = 0.5
    """How long a measurement lasts at least: the same work again and again."""
    max_seconds: PositiveFloat = 60.0
    """How long training once on a text may take; what would take longer is left out, and said."""
    redos: NonNegativeInt = 3
    """How often a measurement that other programs disturbed is repeated before it is taken as it is."""
    windows: PositiveInt = 20
    """How many windows long the text is that small models write: sdpa, and variants whose memory does not grow."""

    def build(self) -> Study:
        """The study.

        Raises:
            UserError: heads that do not divide, or a size that is too large.
        """
        if self.n_head % self.n_kv_head:
            raise UserError(
                f"study.n_kv_head: study.n_head {self.n_head} is not divisible by {self.n_kv_head}; take a divisor"
            )
        return Complexity(self)

    def shape(self, name: str, context: int, n_kv_head: int | None = None) -> GPTConfig:
        """A small model of a variant.

        Raises:
            UserError: a size that is too large.
        """
        wanted = {"window": self.window, "sinks": self.sinks, "stride": self.stride}
        return parse(
            GPTConfig,
            {
                "n_head": self.n_head, "n_kv_head": n_kv_head or self.n_kv_head, "head_dim": self.head_dim,
                "d_model": self.n_head * self.head_dim, "n_layer": 2, "vocab_size": 256, "context": context,
                "attention": configured(name, wanted),
            },
            "study",
        )  # fmt: skip


class Complexity(Study):
    """Measures one length after the other, and at each all variants in turn."""

    def __init__(self, config: ComplexityConfig) -> None:
        self.config = config
        self.names = variant_names(PACKAGE)
        self.lengths = sorted(set(config.lengths))
        self.layers = [config.shape(name, self.lengths[-1]) for name in self.names]
        self.writers = [config.shape(name, config.windows * config.window) for name in self.names]

    def run(self, context: Context) -> Findings:
        """All tables and figures."""
        c, device = self.config, context.device
        costs = Costs(self.names, self.lengths, c.fit)
        layers = {shape.attention.name: shape.attention.build(shape, 0).to(device) for shape in self.layers}
        rules = Rules(c.repeats, c.min_seconds, c.redos, device)
        measuring = Measuring(layers, costs, rules, c.max_seconds)
        effort = {length: 1 + length / LARGE for length in self.lengths}
        with context.progress(sum(effort.values()) + WRITING) as advance:
            for length, part in effort.items():
                measuring.at(length, DTYPES[c.precision], partly(advance, part))
            models = [GPT(shape).to(device).eval() for shape in self.writers]
            told = [m for m in models if m.config.attention.name == BASE or all(a.endless for a in m.attentions)]
            costs.generations = generate_long(told, c.windows * c.window, rules, partly(advance, WRITING))
        costs.heads = self.heads(device)
        return findings(costs)

    def heads(self, device: torch.device) -> list[Heads]:
        """What keys and values take in a layer, for each number of heads that there can be."""
        c, length, dtype = self.config, self.lengths[-1], DTYPES[self.config.precision]
        found = []
        for n_kv_head in (n for n in range(c.n_head, 0, -1) if c.n_head % n == 0):
            shape = c.shape(BASE, length, n_kv_head)
            layer = shape.attention.build(shape, 0)
            memory = filled(layer, Inputs.draw(layer, length, dtype, device), length)
            kind = "MHA" if n_kv_head == c.n_head else "MQA" if n_kv_head == 1 else "GQA"
            formula = 2 * n_kv_head * c.head_dim * dtype.itemsize * length
            found.append(Heads(kind, n_kv_head, memory.nbytes(), formula))
        return found
