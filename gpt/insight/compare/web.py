"""Runs beside one another as one HTML page: the table, and their curves over steps, tokens or time."""

from pathlib import Path
from typing import Any

from gpt.insight import page
from gpt.insight.compare.table import BITS, LEGEND, MEASURES, Comparison, header, rows
from gpt.insight.curves import Curve, chart, share

TEMPLATE = Path(__file__).parent / "template" / "compare.html"


def as_html(comparison: Comparison) -> str:
    """The page."""
    return page.build(
        TEMPLATE,
        {"charts": charts(comparison)},
        header=header(comparison),
        rows=list(rows(comparison)),
        numbers=[measure.label for measure in MEASURES],
        pair=comparison.pair,
        legend=LEGEND,
        sorted_by=comparison.sorted_by,
    )


def charts(comparison: Comparison) -> list[dict[str, Any]]:
    """Of what all runs have a curve each; bits per byte where losses are not of the same tokens."""
    told = [("Validation loss", "nats per token", "validation_loss"), ("Training loss", "nats per token", "loss")]
    if comparison.by_bits:
        told.insert(0, ("Validation, bits per byte", "bits per byte", BITS))
    most = share(len(told) * len(comparison.runs))
    drawn = [
        chart(title, unit, [Curve(run.name, run.columns, column) for run in comparison.runs], most)
        for title, unit, column in told
    ]
    return [one for one in drawn if one["series"]]
