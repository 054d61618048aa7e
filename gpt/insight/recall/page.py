"""What is told of recall: how often each attention answers right, by how far away the answer is and among how many."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from gpt.insight.plot import new_figure
from gpt.insight.recall.associative import Recall
from gpt.insight.study import Cell, Findings, Table
from gpt.insight.variants import styles

PIECES = 8
"""Into which all distances are cut."""

APART = 0.1
"""A difference of accuracies that is worth a sentence."""


class Questions(NamedTuple):
    """The questions of some texts, each a tensor of (texts, questions)."""

    distance: Tensor
    """How many tokens before a question its pair stands."""
    pairs: Tensor
    """How many pairs there are in its text."""
    column: Tensor
    """Whether the pair stands in a column."""


class Results(NamedTuple):
    """What was asked, and which answers were right."""

    task: Recall
    questions: Questions
    right: Mapping[str, Tensor]
    """Of each variant, (texts, questions) bool."""
    window: int
    """Tokens of it."""

    def rate(self, name: str, which: Tensor) -> float | None:
        """The share of right answers among some questions; None where there is none."""
        return float(self.right[name][which].float().mean()) if which.any() else None


def findings(results: Results) -> Findings:
    """All tables, figures and sentences."""
    distances, reach = by_distance(results), by_reach(results)
    pairs = {str(n): results.questions.pairs == n for n in sorted(set(results.task.pairs))}
    tables = {
        "distance": table(results, "Right answers by the distance to the pair, in tokens", "distance", distances),
        "reach": table(results, f"Right answers by where the pair stands; window {results.window}", "pair", reach),
        "pairs": table(results, "Right answers by the number of pairs in a text", "pairs", pairs),
    }
    return Findings(tables, {"recall": draw(results, distances, pairs)}, list(sentences(results, reach, pairs)))


def by_distance(results: Results) -> dict[str, Tensor]:
    """The questions in pieces of equal width, one of them cut where the window ends."""
    distance, end = results.questions.distance, 2 * results.task.places
    width = -(-end // PIECES)
    edges = sorted({*range(0, end, width), min(results.window, end), end})
    edges[0] = 1  # a pair is at least one token before its question
    ranges = [(low, high) for low, high in pairwise(edges) if low < high]
    return {span(low, high - 1): (distance >= low) & (distance < high) for low, high in ranges}


def span(low: int, high: int) -> str:
    """Distances from one to another.

    >>> span(8, 15), span(1, 1)
    ('8 - 15', '1')
    """
    return f"{low} - {high}" if low < high else str(low)


def by_reach(results: Results) -> dict[str, Tensor]:
    """The questions by what can reach their pairs in one layer."""
    inside, column = results.questions.distance < results.window, results.questions.column
    return {
        "in the window": inside,
        "beyond, in a column": ~inside & column,
        "beyond, elsewhere": ~inside & ~column,
        "anywhere": torch.ones_like(inside),
    }


def table(results: Results, title: str, column: str, groups: Mapping[str, Tensor]) -> Table:
    """A row for each group of questions that there are, a column for each variant."""
    rows: list[list[Cell]] = [
        [group, int(which.sum()), *(results.rate(name, which) for name in results.right)]
        for group, which in groups.items()
        if which.any()
    ]
    guess = f"a guess: {1 / results.task.values:.3g}"
    return Table(f"{title} ({guess})", [column, "questions", *results.right], rows)


def sentences(results: Results, reach: Mapping[str, Tensor], pairs: Mapping[str, Tensor]) -> Iterator[str]:
    """What one sees."""
    inside, column, elsewhere, _ = reach.values()
    both = [f"{name} {percent(results, name, inside)} and {percent(results, name, ~inside)}" for name in results.right]
    yield (
        f"Where the pair is among the last {results.window} tokens, and where it is further away, the right answer is "
        f"found by {'; '.join(both)}. A guess is right in {1 / results.task.values:.1%}."
    )
    for name in results.right:
        of_column, of_others = results.rate(name, column), results.rate(name, elsewhere)
        if of_column is not None and of_others is not None and of_column - of_others > APART:
            yield (
                f"Beyond the window {name} finds {of_column:.1%} of what stands in a column, "
                f"and {of_others:.1%} of what does not."
            )
    few, many = min(pairs, key=int), max(pairs, key=int)
    ends = pairs[few], pairs[many]
    falls = [f"{name} {' and '.join(percent(results, name, which) for which in ends)}" for name in results.right]
    yield f"With {few} pairs to remember, and with {many}, it is found by {'; '.join(falls)}."


def percent(results: Results, name: str, which: Tensor) -> str:
    """A variant's share of right answers."""
    rate = results.rate(name, which)
    return "n/a" if rate is None else f"{rate:.1%}"


def draw(results: Results, distances: Mapping[str, Tensor], pairs: Mapping[str, Tensor]) -> Figure:
    """Accuracy against distance, and against the number of pairs."""
    figure, axes = new_figure(columns=2, width=11.0, height=4.6)
    by_distance, by_pairs = axes[0]
    asked = {group: which for group, which in distances.items() if which.any()}
    middles = [float(results.questions.distance[which].float().mean()) for which in asked.values()]
    _lines(by_distance, results, middles, list(asked.values()))
    end = 2 * results.task.places
    by_distance.set_xticks(range(0, end + 1, -(-end // PIECES)))
    by_distance.axvline(results.window - 0.5, color="#8d99ae", linestyle=":", linewidth=1)
    place = (results.window - 0.5, 1.0)
    by_distance.annotate("window", place, (4, 14), textcoords="offset points", color="#6c7582", va="top")
    by_distance.set(
        xlabel="tokens between pair and question", title="How far away the answer is", ylabel="right answers"
    )
    _lines(by_pairs, results, [int(n) for n in pairs], list(pairs.values()))
    by_pairs.set_xscale("log", base=2)
    by_pairs.set_xticks([int(n) for n in pairs], list(pairs))
    by_pairs.minorticks_off()
    by_pairs.set(xlabel="pairs in a text", title="How many pairs there are to remember")
    handles, labels = by_distance.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _lines(axis: Axes, results: Results, x: Sequence[float], groups: Sequence[Tensor]) -> None:
    for name, style in styles().items():
        if name in results.right:
            axis.plot(x, [results.rate(name, which) or 0.0 for which in groups], label=name, **style)
    axis.axhline(1 / results.task.values, color="#8d99ae", linestyle="--", linewidth=1, label="a guess")
    axis.set_ylim(0, 1.08)
    axis.yaxis.set_major_formatter(lambda rate, _: f"{rate:.0%}")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
