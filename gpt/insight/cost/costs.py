"""What the study of complexity measures, as plain data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple


@dataclass
class Series:
    """A cost of each variant, by length."""

    of: dict[str, dict[int, float]] = field(default_factory=dict)
    left_out: dict[tuple[str, int], str] = field(default_factory=dict)
    """Why a variant was not measured at a length."""

    def known(self, name: str) -> dict[int, float]:
        """The costs of a variant."""
        return self.of.setdefault(name, {})


class Heads(NamedTuple):
    """What a cache of keys and values takes, for a number of heads."""

    kind: str
    """MHA, GQA or MQA."""
    n_kv_head: int
    nbytes: int
    """Of a layer, with the longest text in it."""
    by_formula: int
    """2 · n_kv_head · head_dim · bytes of a number · tokens."""


class Generation(NamedTuple):
    """A small model writing a long text through its cache."""

    name: str
    """Its attention."""
    runs: Sequence[Sequence[float]]
    """Seconds of each token, for each time that it wrote the text."""
    cache: int
    """Bytes of all layers' memories at the end."""

    def tenths(self, run: Sequence[float]) -> tuple[float, float]:
        """The median seconds of a token in the first tenth of a text, and in the last.

        >>> Generation("linear", [], 0).tenths([1.0, *[7.0] * 18, 3.0])
        (4.0, 5.0)
        """
        tenth = max(1, len(run) // 10)
        return median(run[:tenth]), median(run[-tenth:])

    @property
    def first(self) -> float:
        """Seconds of a token in the first tenth, the median over all times."""
        return median(self.tenths(run)[0] for run in self.runs)

    @property
    def last(self) -> float:
        """Likewise in the last tenth."""
        return median(self.tenths(run)[1] for run in self.runs)

    @property
    def ratio(self) -> float:
        """The last tenth to the first one of the same time, the median over all times."""
        return median(last / first for first, last in map(self.tenths, self.runs))


@dataclass
class Costs:
    """All that was measured."""

    names: Sequence[str]
    """The variants."""
    lengths: Sequence[int]
    fit: Sequence[int]
    """Lengths that exponents are fitted over."""
    seconds: Series = field(default_factory=Series)
    """Of training on a text."""
    peak: Series = field(default_factory=Series)
    """Bytes that it takes."""
    token_seconds: Series = field(default_factory=Series)
    """Of decoding a token."""
    cache: Series = field(default_factory=Series)
    """Bytes of a layer's memory."""
    heads: list[Heads] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    measurements: int = 0
    disturbed: int = 0
    """How many of them other programs disturbed to the end."""
