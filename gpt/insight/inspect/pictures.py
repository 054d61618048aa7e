"""What was seen, as PNG: each layer's weights, a grid of its heads; the heads' numbers; surprise."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from torch import Tensor

from gpt.insight.inspect.heads import Heads
from gpt.insight.inspect.reading import Reading
from gpt.insight.inspect.surprise import step_of
from gpt.insight.plot import drawable, new_figure, save

LONGEST = 14
"""Characters of a label; of a longer one the first are shown."""

ONE_ROW = 3
"""Heads that stand side by side."""

CELL = 0.16
"""Inches that a token needs for its label to be read."""

BESIDE = 0.42
"""Inches that it needs where short labels stand side by side."""

SIDE = 40.0
"""Inches; a picture that would be larger with labels has none."""

NUMBERED = 256
"""Heads; where there are more, their numbers are told by colours alone."""


def draw(reading: Reading, folder: Path) -> list[Path]:
    """Draw all of them into the folder.

    Raises:
        OSError: they cannot be written there.
    """
    labels = [drawable(shortened(label)) for label in reading.labels]
    digits = max(2, len(str(len(reading.weights))))
    layers = [
        save(layer_figure(weights, labels, f"Layer {i}"), folder / f"attention_layer_{i:0{digits}}.png")
        for i, weights in enumerate(reading.weights, 1)
    ]
    return [
        *layers,
        save(heads_figure(reading.heads), folder / "heads.png"),
        save(surprise_figure(reading, labels), folder / "surprise.png"),
    ]


def shortened(label: str) -> str:
    """A label of at most 14 characters."""
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def layer_figure(weights: Tensor, labels: Sequence[str], title: str) -> Figure:
    """The weights of a layer's heads, (n_head, length, length): a row for each query, a column for each key."""
    heads, length, _ = weights.shape
    columns = heads if heads <= ONE_ROW else math.ceil(math.sqrt(heads))
    rows = math.ceil(heads / columns)
    labelled = columns * length * CELL <= SIDE
    size = max(2.6, length * CELL) if labelled else 4.0
    figure, axes = new_figure(rows, columns, columns * size + 2, rows * size + 1.6)
    figure.suptitle(f"{title}: rows look at columns{'' if labelled else unnamed(length)}")
    for head, place in enumerate(axes.flat):
        if head >= heads:
            place.set_axis_off()
            continue
        image = heatmap(place, weights[head].numpy())
        place.set_title(f"head {head + 1}")
        left, lowest = head % columns == 0, head + columns >= heads
        name(place, labels if labelled else [], left, lowest)
    figure.colorbar(image, ax=axes, label="weight", fraction=0.04, ticks=[0, 0.05, 0.2, 0.5, 1])
    return figure


def heatmap(axes: Axes, weights: np.ndarray) -> Any:
    """Weights from 0 to 1 as colours, by the root: small ones among many tokens are told apart so; unseen is grey."""
    axes.set_facecolor("0.93")
    return axes.imshow(
        np.ma.masked_equal(weights, 0), cmap="viridis", norm=PowerNorm(0.5, 0, 1), interpolation="nearest"
    )


def name(axes: Axes, labels: Sequence[str], left: bool, below: bool) -> None:
    """Write the labels along the rows where `left`, along the columns where `below`; none leaves all ticks out."""
    places = range(len(labels))
    axes.set_yticks(places if left else [], labels if left else [], fontsize=8)
    axes.set_xticks(places if below else [], labels if below else [], fontsize=8, rotation=upright(labels))


def upright(labels: Sequence[str]) -> int:
    """By how many degrees labels below an axis are turned: single characters not at all."""
    return 0 if all(len(label) == 1 for label in labels) else 90


def unnamed(length: int) -> str:
    """What a title ends with where the tokens have no labels."""
    return f"; {length} tokens are too many to name here, the page names them"


def heads_figure(heads: Heads) -> Figure:
    """Entropy and the share on the first token, a row for each layer, a column for each head."""
    layers, count = heads.entropy.shape
    figure, axes = new_figure(1, 2, 2 * max(3.2, 0.55 * count + 1.6), max(3.0, 0.45 * layers + 1.4))
    shown = (
        (heads.entropy, "Entropy, bits", None, "{:.1f}"),
        (heads.first, "Share on the first token", 1.0, "{:.0%}"),
    )
    for place, (numbers, title, most, form) in zip(axes.flat, shown, strict=True):
        top = most or max(float(numbers.max()), 1e-9)
        image = place.imshow(numbers.numpy(), cmap="viridis", vmin=0, vmax=top, aspect="auto")
        place.set(title=title, xlabel="head", ylabel="layer")
        place.set_xticks(range(count), range(1, count + 1))
        place.set_yticks(range(layers), range(1, layers + 1))
        figure.colorbar(image, ax=place)
        if layers * count <= NUMBERED:
            write_numbers(place, numbers, top, form)
    return figure


def write_numbers(axes: Axes, numbers: Tensor, top: float, form: str) -> None:
    """Write each number into its cell, light on dark colours and dark on light ones; `top` is the lightest."""
    for (row, column), number in np.ndenumerate(numbers.numpy()):
        ink = "white" if number < 0.6 * top else "black"
        axes.text(column, row, form.format(number), ha="center", va="center", fontsize=8, color=ink)


def surprise_figure(reading: Reading, labels: Sequence[str]) -> Figure:
    """A bar for each token, as high as its surprise."""
    length = len(labels)
    labelled = length * CELL <= SIDE
    beside = length * BESIDE <= SIDE and all(len(part) <= 5 for label in labels for part in label.split())
    figure, axes = new_figure(width=min(SIDE, max(6.0, length * (BESIDE if beside else CELL) + 1.5)))
    place = axes[0, 0]
    colours = [step_of(bits).colour for bits in reading.bits]
    place.bar(range(length), [bits or 0 for bits in reading.bits], color=colours, edgecolor="0.4", linewidth=0.5)
    place.set_title(
        f"Surprise of each token{'; dashed: the mean' * bool(reading.mean)}{'' if labelled else unnamed(length)}"
    )
    place.set_ylabel("bits")
    place.margins(x=0.01)
    place.spines[["top", "right"]].set_visible(False)
    if reading.mean:
        place.axhline(reading.mean.per_token, color="0.4", linewidth=1, linestyle="--")
    if labelled:
        lines = [label.replace(" ", "\n") for label in labels] if beside else labels
        place.set_xticks(range(length), lines, fontsize=8, rotation=0 if beside else 90)
    else:
        place.set_xlabel("token")
    return figure
