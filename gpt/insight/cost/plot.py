"""Pictures of the costs of attention: each against the length, on logarithmic axes, where a power law is a line."""

from collections.abc import Sequence
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from gpt.insight.cost.costs import Costs, Generation, Series
from gpt.insight.plot import new_figure
from gpt.insight.variants import styles

GUIDE = "#b8bfc9"
"""Colour of the lines that show slopes."""

FEW_DECADES = 300.0
"""Up to so large a ratio of the ends of an axis, not the powers of ten alone are written at it."""

PIECES = 40
"""Of a long text; the median of each is drawn."""


def draw(costs: Costs) -> Figure:
    """Training time and memory, decoding time and memory."""
    figure, axes = new_figure(2, 2, width=11.0, height=8.0)
    panels = (
        (costs.seconds, 1.0, "Training on a text: time (s)", (1, 2)),
        (costs.peak, 1e-6, "Training on a text: memory (MB)", (1, 2)),
        (costs.token_seconds, 1e6, "Decoding a token: time (µs)", (1,)),
        (costs.cache, 1 / 1024, "Decoding: memory of a layer (KiB)", (1,)),
    )
    for axis, (series, scale, title, slopes) in zip(axes.flat, panels, strict=True):
        _lines(axis, costs, series, scale)
        _guides(axis, costs.lengths, slopes)
        axis.set_title(title)
    handles, labels = axes[1, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _lines(axis: Axes, costs: Costs, series: Series, scale: float) -> None:
    for name, style in styles().items():
        points = {length: cost * scale for length, cost in series.known(name).items() if cost > 0}
        # reference under sdpa, which often has the same costs: its larger marks show around it
        size, order = (9, 1) if name == "reference" else (6, 2)
        axis.loglog(list(points), list(points.values()), label=name, markersize=size, zorder=order, **style)
    axis.set_xscale("log", base=2)
    axis.set_xticks(costs.lengths, [_short(length) for length in costs.lengths])
    axis.minorticks_off()
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > FEW_DECADES * low else (1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_xlabel("tokens")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _short(length: int) -> str:
    """A length as it is written under an axis.

    >>> _short(512), _short(32768), _short(1500)
    ('512', '32k', '1500')
    """
    return f"{length // 1024}k" if length % 1024 == 0 else str(length)


def _guides(axis: Axes, lengths: Sequence[int], slopes: Sequence[int]) -> None:
    """Thin lines of the given slopes from the lower left corner of what is drawn, as far as they stay inside."""
    costs = [float(cost) for line in axis.get_lines() for cost in np.asarray(line.get_ydata())]
    if not costs:
        return
    first, last, low, high = lengths[0], lengths[-1], min(costs), max(costs)
    for slope in slopes:
        end = min(last, first * (high / low) ** (1 / slope))
        axis.plot([first, end], [low, low * (end / first) ** slope], color=GUIDE, linewidth=1, zorder=0)
        name = "T" if slope == 1 else f"T$^{slope}$"
        place = (end, low * (end / first) ** slope)
        axis.annotate(name, place, (4, -3), textcoords="offset points", va="center", color="#7a828e")


def draw_generations(generations: Sequence[Generation]) -> Figure:
    """The time of a token along a long text."""
    figure, axes = new_figure(width=8.0, height=4.2)
    axis = axes[0, 0]
    for generation in generations:
        ends, times = pieces(generation)
        style = styles()[generation.name]
        axis.plot(ends, [1e3 * time for time in times], label=generation.name, markersize=4, **style)
    axis.set_ylim(bottom=0)
    axis.set(xlabel="tokens written", ylabel="ms", title="A model of two layers writes: the time of a token")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=len(generations), frameon=False)
    return figure


def pieces(generation: Generation) -> tuple[list[int], list[float]]:
    """Where each piece of the text ends, and the median seconds of its tokens over all times it was written.

    >>> pieces(Generation("linear", [[1.0, 2.0], [3.0, 4.0]], 0))
    ([1, 2], [2.0, 3.0])
    """
    length = len(generation.runs[0])
    size = max(1, length // PIECES)
    begins = range(0, length - size + 1, size)
    times = [median(time for run in generation.runs for time in run[begin : begin + size]) for begin in begins]
    return [begin + size for begin in begins], times
