"""Measuring what attention costs at one length, all variants in turn; what would cost too much is left out."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from gpt.insight.bench.race import Contender, Entry, Race, Rules, run
from gpt.insight.cost.costs import Costs, Series
from gpt.insight.cost.growth import extrapolated
from gpt.insight.cost.memory import free_bytes, peak_bytes
from gpt.insight.cost.work import Inputs, decoding, filled, training
from gpt.model.attention import Attention

USABLE = 0.8
"""Of the memory that is free; a measurement that needs more is left out."""

Advance = Callable[[float], None]
"""Is told of each part of some work that is done; the parts add up to 1."""

Work = Mapping[str, Callable[[], int]]
"""Of each variant, counting one a call."""


def partly(advance: Advance, part: float) -> Advance:
    """For work that is but a part of the whole."""
    return lambda done: advance(part * done)


class Limits(NamedTuple):
    """What training once on a text may cost."""

    seconds: float
    nbytes: float | None
    """None: this is not known."""


class Measuring:
    """Measures, and keeps what was measured.

    Args:
        layers: the variants.
        costs: what is measured is put there.
        rules: of the races.
        max_seconds: that training once on a text may take.
    """

    def __init__(self, layers: Mapping[str, Attention], costs: Costs, rules: Rules, max_seconds: float) -> None:
        self.layers, self.costs, self.rules, self.max_seconds = layers, costs, rules, max_seconds

    def at(self, length: int, dtype: torch.dtype, advance: Advance) -> None:
        """Training and decoding at a length; the lengths come in ascending order."""
        inputs = Inputs.draw(next(iter(self.layers.values())), length, dtype, self.rules.device)
        self.train(inputs, partly(advance, 0.5))
        self.decode(inputs, partly(advance, 0.5))

    def train(self, inputs: Inputs, advance: Advance) -> None:
        """Seconds and peak memory, of the variants that are within the limits."""
        length, device = inputs.length, self.rules.device
        free = free_bytes(device)
        limits = Limits(self.max_seconds, None if free is None else USABLE * free)
        work = {}
        for name, layer in self.layers.items():
            if why := too_much(self.costs, name, length, limits):
                self.costs.seconds.left_out[name, length] = self.costs.peak.left_out[name, length] = why
            else:
                work[name] = training(layer, inputs)
        self._race(work, self.costs.seconds, length, advance)
        # in a pass of its own, and after the times: what a first call loads is not the variant's
        for name in work:
            peak = peak_bytes(work[name], device)
            if peak is None:
                self.costs.peak.left_out[name, length] = "n/a"
            else:
                self.costs.peak.known(name)[length] = peak

    def decode(self, inputs: Inputs, advance: Advance) -> None:
        """Seconds of the last token, and bytes of the memory with all tokens in it."""
        before = inputs.at(0, inputs.length - 1)
        memories = {name: filled(layer, before, inputs.length) for name, layer in self.layers.items()}
        work = {name: decoding(layer, inputs, memories[name]) for name, layer in self.layers.items()}
        self._race(work, self.costs.token_seconds, inputs.length, advance)
        for name, memory in memories.items():
            self.costs.cache.known(name)[inputs.length] = memory.nbytes()

    def _race(self, work: Work, series: Series, length: int, advance: Advance) -> None:
        if not work:
            return advance(1.0)
        contenders = [Contender(Entry(name, ""), does) for name, does in work.items()]
        for standing in run(Race("", contenders, lambda _: {}), self.rules, advance).standings:
            series.known(standing.entry.name)[length] = 1 / standing.speed
            self.costs.measurements += len(standing.speeds)
            self.costs.disturbed += standing.disturbed
        return None


def too_much(costs: Costs, name: str, length: int, limits: Limits) -> str | None:
    """Why a variant's training is left out at a length: what it needs by its last two lengths; None: it is not."""
    nbytes = extrapolated(costs.peak.known(name), length)
    if nbytes is not None and limits.nbytes is not None and nbytes > limits.nbytes:
        return f"needs {nbytes / 1e9:,.0f} GB"
    seconds = extrapolated(costs.seconds.known(name), length)
    if seconds is not None and seconds > limits.seconds:
        return f"needs {seconds:,.0f} s"
    return None
