"""Who sees whom in each attention variant: the mask of the layer that it builds, and its picture."""

from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from gpt.config import variant_names
from gpt.insight.plot import new_figure
from gpt.insight.study import Cell, Table
from gpt.insight.variants import PACKAGE
from gpt.model.attention import Attention
from gpt.model.config import GPTConfig
from gpt.model.mask import Predicate, Where, dense_mask

DOCUMENTS = "documents"
"""The name of packed documents' mask beside those of the variants."""

COLOURS = ListedColormap(["#ffffff", "#dfe5ec", "#2f6690"])
"""Of a pair whose key comes later, of one that is not seen though it could be, of one that is seen."""

LINES_UP_TO = 64
"""Tokens up to which each pair is drawn as a square of its own."""

PANEL = 3.6
"""Inches of one mask in the picture of all."""


def masks(context: int) -> dict[str, Tensor]:
    """The mask of each variant with its default settings, then that of packed documents; (context, context) bool each.

    The rows are queries, the columns keys. Where layers differ, the first one is taken.
    """
    where = Where.contiguous(0, context, "cpu")
    made = {name: _mask(predicate_of(name, context), where) for name in variant_names(PACKAGE)}
    return {**made, DOCUMENTS: _mask(Attention.visible, packed(context))}


def predicate_of(name: str, context: int) -> Predicate:
    """By what the first of four layers of a variant sees."""
    config = GPTConfig.model_validate({"context": context, "n_layer": 4, "attention": {"name": name}})
    return config.attention.build(config, layer=0).visible


def packed(context: int) -> Where:
    """Three documents in one row, of about 3/8, 3/8 and 1/4 of it."""
    tokens = torch.ones(1, context, dtype=torch.int64)
    tokens[0, [0, 3 * context // 8, 3 * context // 4]] = 0
    return Where.packed(tokens, separator=0)


def _mask(visible: Predicate, where: Where) -> Tensor:
    return dense_mask(visible, where, where)[0, 0]


def share(mask: Tensor) -> float:
    """Of the pairs that plain causal attention sees, those that `mask` shows.

    >>> share(torch.tensor([[True, False], [False, True]])) == 2 / 3
    True
    """
    return int(mask.sum()) / int(torch.ones_like(mask).tril().sum())


def masks_table(masks: Mapping[str, Tensor]) -> Table:
    """How much each mask shows."""
    rows: list[list[Cell]] = [[name, int(m.sum()), f"{share(m):.1%}", int(m[-1].sum())] for name, m in masks.items()]
    size = len(next(iter(masks.values())))
    columns = ["mask", "pairs seen", "of plain causal", "by the last token"]
    return Table(f"Who sees whom in a context of {size}, default settings", columns, rows)


def draw_all(masks: Mapping[str, Tensor]) -> Figure:
    """The masks side by side, three in a row."""
    columns = min(3, len(masks))
    rows = -(-len(masks) // columns)
    figure, axes = new_figure(rows, columns, PANEL * columns, (PANEL + 0.2) * rows)
    for panel, (name, mask) in zip(axes.flat, masks.items(), strict=False):
        _draw(panel, name, mask)
    for empty in axes.flat[len(masks) :]:
        empty.axis("off")
    return figure


def draw_one(name: str, mask: Tensor) -> Figure:
    """One mask by itself."""
    figure, axes = new_figure(width=4.4, height=4.6)
    _draw(axes[0, 0], name, mask)
    return figure


def _draw(panel: Axes, name: str, mask: Tensor) -> None:
    size = len(mask)
    past = torch.ones_like(mask).tril()
    lines = "white" if size <= LINES_UP_TO else "none"
    panel.pcolormesh((past.int() + mask.int()).numpy(), cmap=COLOURS, vmin=0, vmax=2, edgecolors=lines, linewidth=0.6)
    panel.set_aspect("equal")
    panel.invert_yaxis()
    ticks = [*range(0, size - max(1, size // 8), max(1, size // 4)), size - 1]
    panel.set_xticks([t + 0.5 for t in ticks], [str(t) for t in ticks])
    panel.set_yticks([t + 0.5 for t in ticks], [str(t) for t in ticks])
    panel.tick_params(length=0, labelsize=8)
    panel.spines[:].set_visible(False)
    panel.set(xlabel="key", ylabel="query")
    seen = f"{share(mask):.0%} of the" if share(mask) < 1 else "all"
    panel.set_title(f"{name}: {seen} causal pairs", fontsize=10)
