"""Why scores are divided by √d_k (Vaswani et al. 2017, section 3.2.1, footnote 4).

Queries and keys are standard normal, so q·k is a sum of d_k products of mean 0 and variance 1:

    std(q·k) = √d_k,    std(q·k / √d_k) = 1

    p = softmax(s),    entropy H(p) = -Σ p log2 p,    Jacobian ∂p/∂s = diag(p) - ppᵀ

Of n scores with standard deviation 1 the softmax has, for many keys, log2(n) - 1/(2 ln 2) bits; of scores far apart it
takes one key, its entropy is near 0, and so is its Jacobian: nothing is left to learn from.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field
from torch import Tensor

from gpt.insight.plot import new_figure
from gpt.insight.study import Cell, Context, Findings, Study, StudyConfig, Table
from gpt.model.attention._softmax import attention_weights

AT_ONCE = 1 << 22
"""Numbers drawn at once, at most, unless a single trial has more."""

UNSCALED, SCALED, THEORY = "#c8553d", "#2f6690", "#8d99ae"
"""Colours of what is drawn."""


class ScalingConfig(StudyConfig):
    """Why scores are divided by √d_k: the spread of q·k, and what it does to the softmax and its gradient."""

    name: Literal["scaling"] = "scaling"
    d_k: list[Annotated[int, Field(ge=1, le=1 << 16)]] = Field([16, 32, 64, 128, 256, 512, 1024], min_length=1)
    """Widths of queries and keys."""
    keys: int = Field(64, ge=2, le=1 << 12)
    """Keys that each query's softmax runs over."""
    trials: int = Field(1000, ge=2)
    """Queries for each d_k, each with its own keys."""

    def build(self) -> Study:
        """The study."""
        return Scaling(self)


class Softmax(NamedTuple):
    """A softmax over the keys, for one d_k."""

    entropy: float
    """Bits, the mean over trials."""
    gradient: float
    """The Jacobian's Frobenius norm, the median over trials: what a typical query gets."""
    mean_gradient: float
    """Its mean, to which the few queries between two keys add most."""


class Row(NamedTuple):
    """What was measured for one d_k."""

    d_k: int
    std: float
    """Of q·k."""
    scaled_std: float
    """Of q·k / √d_k."""
    error: float
    """The standard error of `std`."""
    unscaled: Softmax
    scaled: Softmax


class Scaling(Study):
    """Draws queries and keys for each d_k."""

    def __init__(self, config: ScalingConfig) -> None:
        self.config = config

    def run(self, context: Context) -> Findings:
        """Two tables, and a figure of three plots."""
        generator = torch.Generator().manual_seed(context.seed)
        rows = []
        with context.progress(sum(d_k + self.config.keys for d_k in self.config.d_k)) as advance:
            for d_k in self.config.d_k:
                rows.append(self.measure(d_k, generator, context.device))
                advance(d_k + self.config.keys)
        tables = {"scores": scores_table(rows), "softmax": softmax_table(rows, self.config.keys)}
        return Findings(tables, {"scaling": draw(rows, self.config.keys)}, sentences(rows, self.config.keys))

    def measure(self, d_k: int, generator: torch.Generator, device: torch.device) -> Row:
        """All trials of one d_k, in parts that fit in memory."""
        c = self.config
        part = max(1, AT_ONCE // (c.keys * max(d_k, c.keys)))
        parts = []
        for trials in torch.arange(c.trials).split(part):
            query = torch.randn(len(trials), 1, d_k, generator=generator).to(device)
            key = torch.randn(len(trials), c.keys, d_k, generator=generator).to(device)
            scores = (query @ key.mT).squeeze(1)
            # attention_weights divides by √d_k itself
            unscaled, scaled = (attention_weights(q, key).squeeze(1) for q in (query * math.sqrt(d_k), query))
            parts.append([scores, *sharpness(unscaled), *sharpness(scaled)])
        scores, *sharp = (torch.cat(columns) for columns in zip(*parts, strict=True))
        return Row(
            d_k,
            float(scores.std()),
            float((scores / math.sqrt(d_k)).std()),
            standard_error(d_k, c.keys, c.trials),
            *(Softmax(float(h.mean()), float(g.median()), float(g.mean())) for h, g in (sharp[:2], sharp[2:])),
        )


def sharpness(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Of softmaxes (trials, keys) their entropies in bits and their Jacobians' Frobenius norms, (trials,) each.

    >>> sharpness(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    (tensor([1., 0.]), tensor([0.5000, 0.0000]))
    """
    entropy = torch.special.entr(weights).sum(dim=1) / math.log(2)
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]
    return entropy, torch.linalg.matrix_norm(jacobian)


def standard_error(d_k: int, keys: int, trials: int) -> float:
    """The standard error of the standard deviation of q·k over `trials` queries of `keys` keys each.

    For one query, the mean of (q·k)² over its keys has the variance 2 d_k + 2 (d_k² + 2 d_k) / keys, the first term
    being that of |q|², which its keys share. The mean over trials, s², has that over trials, and std(s) = std(s²) / 2s.
    """
    variance = (2 * d_k + 2 * (d_k**2 + 2 * d_k) / keys) / trials
    return math.sqrt(variance) / (2 * math.sqrt(d_k))


def scores_table(rows: Sequence[Row]) -> Table:
    """The spread of scores, beside what theory says."""
    columns = ["d_k", "std of q·k", "√d_k", "± error", "std of q·k / √d_k", "theory", "± error"]
    cells: list[list[Cell]] = [
        [r.d_k, r.std, math.sqrt(r.d_k), r.error, r.scaled_std, 1, r.error / math.sqrt(r.d_k)] for r in rows
    ]
    return Table("Scores: their standard deviation, what theory says, and the sampling error", columns, cells)


def softmax_table(rows: Sequence[Row], keys: int) -> Table:
    """What becomes of the softmax."""
    columns = ["d_k", *(f"{what} of {of}" for what in ("bits", "median", "mean") for of in ("q·k", "q·k / √d_k"))]
    cells: list[list[Cell]] = [
        [r.d_k, *(number for pair in zip(r.unscaled, r.scaled, strict=True) for number in pair)] for r in rows
    ]
    title = f"The softmax over {keys} keys: its entropy in bits (even weights: {math.log2(keys):.3g}), and the median "
    return Table(f"{title}and mean of its gradient's norm, of diag(p) - ppᵀ", columns, cells)


def sentences(rows: Sequence[Row], keys: int) -> list[str]:
    """What one sees."""
    first, last = min(rows), max(rows)
    furthest = max(abs(r.std - math.sqrt(r.d_k)) / r.error for r in rows)
    limit = math.log2(keys) - 1 / (2 * math.log(2))
    return [
        f"The standard deviation of q·k is √d_k: {first.std:.3g} at d_k = {first.d_k}, {last.std:.3g} at {last.d_k}. "
        f"Divided by √d_k it is 1 throughout. It is never further from theory than {furthest:.1f} sampling errors.",
        f"Without scaling the softmax saturates as d_k grows: over {keys} keys its entropy is "
        f"{first.unscaled.entropy:.2g} bits at d_k = {first.d_k} and {last.unscaled.entropy:.2g} at {last.d_k}, where "
        f"even weights have {math.log2(keys):.3g}. Its gradient vanishes: half of the queries get a norm below "
        f"{first.unscaled.gradient:.2g}, then {last.unscaled.gradient:.2g}.",
        f"With scaling neither depends on d_k: {first.scaled.entropy:.3g} bits at {first.d_k}, "
        f"{last.scaled.entropy:.3g} at {last.d_k} (theory for many keys: {limit:.3g}), and a median norm of "
        f"{first.scaled.gradient:.2g} and {last.scaled.gradient:.2g}.",
    ]


def draw(rows: Sequence[Row], keys: int) -> Figure:
    """Spread, entropy and gradient against d_k."""
    figure, axes = new_figure(columns=3, width=12.0, height=4.2)
    spread, entropy, gradient = axes[0]
    d_k = [r.d_k for r in rows]
    for theory, label in (([math.sqrt(d) for d in d_k], "theory: √d_k and 1"), ([1.0] * len(d_k), "")):
        spread.loglog(d_k, theory, color=THEORY, linewidth=7, alpha=0.5, label=label)
    _pair(spread, d_k, [r.std for r in rows], [r.scaled_std for r in rows])
    spread.set_title("Standard deviation of the scores")
    entropy.axhline(math.log2(keys), linestyle="--", color=THEORY, label=f"even weights: log2({keys})")
    _pair(entropy, d_k, [r.unscaled.entropy for r in rows], [r.scaled.entropy for r in rows])
    entropy.set_ylim(0, 1.08 * math.log2(keys))
    entropy.set_title(f"Entropy of the softmax over {keys} keys (bits)")
    _pair(gradient, d_k, [r.unscaled.gradient for r in rows], [r.scaled.gradient for r in rows])
    gradient.set_yscale("log")
    gradient.set_title("Norm of its gradient (median)")
    for plot in axes[0]:
        plot.set_xscale("log", base=2)
        plot.set_xticks(d_k, [str(d) for d in d_k])
        plot.set_xlabel("d_k")
        plot.grid(alpha=0.25)
        plot.spines[["top", "right"]].set_visible(False)
        plot.legend(frameon=False)
    return figure


def _pair(plot: Axes, d_k: Sequence[int], unscaled: Sequence[float], scaled: Sequence[float]) -> None:
    plot.plot(d_k, unscaled, "o-", color=UNSCALED, label="q·k")
    plot.plot(d_k, scaled, "s-", color=SCALED, label="q·k / √d_k")
