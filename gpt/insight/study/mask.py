"""Why the mask comes before the softmax, and who sees whom in each attention variant.

Of the scores s the last key is hidden, h. With p = softmax(s) over all keys:

    before:        softmax of s with s_h = -inf      p_i / (1 - p_h)    sums to 1
    after:         p with p_h = 0                    p_i                sums to 1 - p_h
    renormalised:  that, divided by its sum          p_i / (1 - p_h)    as before, while 1 - p_h is not 0

After the softmax the hidden key still acts: ∂p_i/∂s_h = -p_i p_h. And divided by its sum, the result is right on paper
only: where the hidden score is large, p_i underflows to 0, and 0/0 is no number.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field
from torch import Tensor

from gpt.insight.plot import new_figure
from gpt.insight.study import Cell, Context, Findings, Study, StudyConfig, Table
from gpt.insight.visible import DOCUMENTS, draw_all, draw_one, masks, masks_table, share
from gpt.model.attention.reference import scaled_dot_product_attention

WEIGHTS = (0.2, 0.3, 0.5)
"""What a softmax over all three keys gives; the last key is the one to hide."""

HUGE = 1e4
"""A hidden score at which the other weights are 0 in fp32: e^-10000."""

COLOURS = ("#2f6690", "#4f8f6f", "#c8553d")
"""Of the three keys."""


class MaskConfig(StudyConfig):
    """Masking before and after the softmax, and pictures of who sees whom in each attention variant."""

    name: Literal["mask"] = "mask"
    context: int = Field(32, ge=4, le=1 << 11)
    """Tokens in the pictures of masks."""

    def build(self) -> Study:
        """The study."""
        return Mask(self)


class Mask(Study):
    """The numbers by hand, and the masks by the predicates."""

    def __init__(self, config: MaskConfig) -> None:
        self.config = config

    def run(self, context: Context) -> Findings:
        """A table and a figure of weights; a table of masks, a figure of them all and one of each."""
        plain = results(math.log(WEIGHTS[-1]), context.device)
        huge = results(HUGE, context.device)
        seen = masks(self.config.context)
        figures = {"weights": draw(plain, huge), "masks": draw_all(seen)}
        figures |= {f"mask_{name}": draw_one(name, mask) for name, mask in seen.items()}
        tables = {"weights": weights_table(plain, huge), "masks": masks_table(seen)}
        return Findings(tables, figures, sentences(plain, huge, seen))


class Result(NamedTuple):
    """What a way to mask gives."""

    weights: list[float]
    leak: float
    """Σ_i |∂weight_i / ∂hidden score|: how much the hidden key still acts."""

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return sum(self.weights)


def before(scores: Tensor) -> Tensor:
    """The project's own attention over one-hot values, which gives its weights: d_k is 1, so q·k / √d_k is the key."""
    query, key, value = torch.ones_like(scores[:1]), scores[:, None], torch.eye(len(scores)).to(scores)
    visible = torch.tensor([True, True, False], device=scores.device)
    return scaled_dot_product_attention(query[None, None, None], key[None, None], value[None, None], visible).flatten()


def after(scores: Tensor) -> Tensor:
    """The hidden weight set to 0 in a softmax over all keys."""
    return scores.softmax(dim=0) * torch.tensor([1, 1, 0]).to(scores)


def renormalised(scores: Tensor) -> Tensor:
    """`after`, divided by its sum."""
    weights = after(scores)
    return weights / weights.sum()


WAYS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "no mask": lambda scores: scores.softmax(dim=0),
    "after": after,
    "after, renormalised": renormalised,
    "before": before,
}


def results(hidden: float, device: torch.device) -> dict[str, Result]:
    """What each way gives, in fp32, where the last score is `hidden`."""
    scores = torch.tensor([*(math.log(weight) for weight in WEIGHTS[:-1]), hidden], device=device)
    found = {}
    for name, way in WAYS.items():
        jacobian = torch.autograd.functional.jacobian(way, scores)
        found[name] = Result(way(scores).tolist(), float(jacobian[:, -1].abs().sum()))
    return found


def weights_table(plain: Mapping[str, Result], huge: Mapping[str, Result]) -> Table:
    """A row for each way and hidden score."""
    rows: list[list[Cell]] = []
    for score, found in (("log 0.5", plain), (f"{HUGE:g}", huge)):
        rows += [[score, name, *result.weights, result.total, result.leak] for name, result in found.items()]
    columns = ["hidden score", "mask", "key 1", "key 2", "key 3, hidden", "sum", "leak"]
    return Table("Weights with the last key masked; leak: Σ |∂weight / ∂hidden score|", columns, rows)


def sentences(plain: Mapping[str, Result], huge: Mapping[str, Result], seen: Mapping[str, Tensor]) -> list[str]:
    """What one sees."""
    shares = {name: share(mask) for name, mask in seen.items()}
    documents = shares.pop(DOCUMENTS)
    fewer = [f"{name} {of_all:.0%}" for name, of_all in shares.items() if of_all < 1]
    return [
        f"Masked before the softmax, the weights are {_list(plain['before'])} and sum to {plain['before'].total:.3g}; "
        f"masked after it, they are {_list(plain['after'])} and sum to {plain['after'].total:.3g}.",
        f"After the softmax the hidden key still acts: a small change of its score changes the other weights, "
        f"{plain['after'].leak:.3g} times as much in all; before it, {plain['before'].leak:.3g} times. In a causal "
        "model that is the future, leaking.",
        f"Dividing by the sum mends that on paper: {_list(plain['after, renormalised'])}. But with a hidden score of "
        f"{HUGE:g} the others underflow, and it gives {_list(huge['after, renormalised'])}, since 0/0 is no number; "
        f"masked before, {_list(huge['before'])}.",
        f"Of the pairs that plain causal attention sees in a context of {len(seen[DOCUMENTS])}, these see fewer: "
        f"{', '.join(fewer)}. Of three packed documents {documents:.0%} are left.",
    ]


def _list(result: Result) -> str:
    """Weights as they are written by hand: [0.4, 0.6, 0]."""
    return f"[{', '.join(f'{weight:.3g}' for weight in result.weights)}]"


def draw(plain: Mapping[str, Result], huge: Mapping[str, Result]) -> Figure:
    """The weights of each way as one bar, key upon key: its height is their sum."""
    figure, axes = new_figure(columns=2, width=11.0, height=4.2)
    titles = ("Scores log 0.2, log 0.3 and, hidden, log 0.5", f"The same with a hidden score of {HUGE:g}, in fp32")
    for panel, title, found in zip(axes[0], titles, (plain, huge), strict=True):
        _bars(panel, found)
        panel.set_title(title)
    axes[0, 0].set_ylabel("weight")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _bars(panel: Axes, found: Mapping[str, Result]) -> None:
    names = ["softmax,\nno mask", "mask after", "mask after,\nrenormalised", "mask before"]
    floor = [0.0] * len(found)
    for key, (colour, label) in enumerate(zip(COLOURS, ("key 1", "key 2", "key 3, to be hidden"), strict=True)):
        heights = [0.0 if math.isnan(result.total) else result.weights[key] for result in found.values()]
        panel.bar(names, heights, 0.6, floor, color=colour, label=label)
        for x, (height, bottom) in enumerate(zip(heights, floor, strict=True)):
            if height > 0:
                panel.text(x, bottom + height / 2, f"{height:.2g}", ha="center", va="center", color="white")
        floor = [bottom + height for bottom, height in zip(floor, heights, strict=True)]
    for x, (result, top) in enumerate(zip(found.values(), floor, strict=True)):
        told = "0/0: NaN" if math.isnan(result.total) else f"sum {result.total:.2g}"
        panel.text(x, top + 0.02, told, ha="center", va="bottom")
    panel.axhline(1, color="#8d99ae", linestyle="--", linewidth=1, zorder=0)
    panel.set_ylim(0, 1.15)
    panel.spines[["top", "right"]].set_visible(False)
