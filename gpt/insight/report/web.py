"""A run as one HTML page."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpt.config import leaves
from gpt.insight import page
from gpt.insight.compare.difference import readable, typed_as, without_defaults
from gpt.insight.curves import Curve, chart, share
from gpt.insight.record import Record
from gpt.training.command import command
from gpt.training.defaults import default_settings
from gpt.training.summary import spent

TEMPLATE = Path(__file__).parent / "template" / "report.html"

SAMPLES = 20
"""Texts that are shown; of more, as many from all of the training, the first and the last among them."""

CHARTS = (
    ("Loss", "nats per token", 1.0, False, {"training": "loss", "validation": "validation_loss"}),
    ("Learning rate", "of the matrices", 1.0, True, {"learning rate": "lr"}),
    ("Norm of the gradient", "before it is clipped", 1.0, True, {"norm": "grad_norm"}),
    ("Speed", "tokens per second", 1.0, True, {"speed": "tokens_per_second"}),
    ("Memory, the most so far", "GB", 1e9, True, {"memory": "memory"}),
)
"""Title, unit, what a number is divided by, whether from zero, and the columns of metrics.csv under their names."""

Fact = tuple[str, str]
"""A label, and what there is to say."""


def as_html(run: Record) -> str:
    """The page."""
    typed = shlex.join(command(run.settings)) if run.checked else ""
    return page.build(
        TEMPLATE,
        {"charts": charts(run)},
        name=title(run),
        folder="/".join(run.folder.absolute().parts[-2:]),  # a job of a sweep is but a number
        outcome=list(outcome(run)),
        samples=few(run.samples),
        untold=max(0, len(run.samples) - SAMPLES),
        differing=differing(run.settings) if run.checked else [],
        settings=[(path, readable(value)) for path, value in leaves(run.settings).items()],
        summary=run.summary,
        command=typed,
    )


def title(run: Record) -> str:
    """The name that was given to a run, else its folder's."""
    name = run.settings.get("name")
    return str(name) if name and name != default_settings()["name"] else run.folder.absolute().name


def charts(run: Record) -> list[dict[str, Any]]:
    """All that was measured."""
    most = share(sum(len(columns) for *_, columns in CHARTS))
    drawn = [
        chart(title, unit, [Curve(name, run.columns, column, per) for name, column in columns.items()], most, zero)
        for title, unit, per, zero, columns in CHARTS
    ]
    return [one for one in drawn if one["series"]]


def outcome(run: Record) -> Iterator[Fact]:
    """What came of it, as label and text."""
    yield "status", run.status
    loss, bits, step = run.at_best("validation_loss"), run.at_best("validation_bits_per_byte"), run.at_best("step")
    if loss is not None and bits is not None:
        best = f"{loss:.4f} nats per token (perplexity {math.exp(min(loss, 700)):,.1f}), {bits:.4f} bits per byte"
        yield "validation", f"{best}, the lowest, after step {step or 0:,.0f}"
    if (last := run.last("validation_loss")) is not None and last != loss:
        yield "at the end", f"{last:.4f} nats per token on the validation split"
    if (training := run.last("loss")) is not None:
        yield "training loss", f"{training:.4f} nats per token, of the last updates"
    yield "length", f"{run.last('step') or 0:,.0f} steps, {run.last('tokens') or 0:,.0f} tokens"
    yield from computed(run)


def computed(run: Record) -> Iterator[Fact]:
    """How long that took, and on what."""
    if run.state:
        yield "time", spent(run.state)
    if (speed := run.median("tokens_per_second")) is not None:
        share_of_peak = run.median("mfu")
        peak = f", {share_of_peak:.0%} of the best matrix products" if share_of_peak is not None else ""
        yield "speed", f"{speed:,.0f} tokens/s{peak}"
    if (memory := run.last("memory")) is not None:
        yield "memory", f"{memory / 1e9:.2f} GB at most"
    for what in ("skipped", "spikes"):
        if number := run.last(what):
            yield what, f"{number:,.0f}"
    if run.state:
        s = run.state
        parts = f", an update in {s.accumulate} parts" if s.accumulate > 1 else ""
        yield "computed", f"on {s.device} in {s.precision}, {'' if s.compiled else 'not '}compiled{parts}"


def differing(settings: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The settings that are not train.py's own: path, value and default; a choice before what it has.

    Of another variant than the default only what is not as it comes.
    """
    now, before = leaves(settings), leaves(default_settings())
    others = [path.removesuffix(".name") for path in now if path.endswith(".name") and before.get(path) != now[path]]
    told = without_defaults(now, others)
    return [
        (typed_as(path), readable(told[path]), readable(before[path]) if path in before else "")
        for path in sorted(told, key=lambda path: not path.endswith(".name"))
        if path not in before or before[path] != told[path]
    ]


def few(samples: Sequence[Any]) -> list[Any]:
    """At most `SAMPLES` of the samples, the last one first."""
    places = np.linspace(0, len(samples) - 1, min(len(samples), SAMPLES)).round().astype(int)
    return [samples[place] for place in reversed(places)]
