"""What was seen, as one HTML page: a head is picked with the mouse, its weights are read token by token."""

import base64
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.insight import page
from gpt.insight.inspect.labels import LEGEND
from gpt.insight.inspect.reading import Reading
from gpt.insight.inspect.surprise import NO_SURPRISE, READ_AS, STEPS
from gpt.insight.inspect.text import summary

FILE = "inspect.html"
TEMPLATE = Path(__file__).parent / "template" / FILE


def write(reading: Reading, folder: Path) -> Path:
    """Write the page into the folder.

    Raises:
        OSError: it cannot be written there.
    """
    html = page.build(
        TEMPLATE,
        as_data(reading),
        text=reading.text.strip() or reading.labels[0],
        facts=summary(reading),
        notices=reading.notices,
        next=reading.next,
        legend=LEGEND,
        read_as=READ_AS,
    )
    return page.write(folder / FILE, html)


def as_data(reading: Reading) -> dict[str, Any]:
    """What the page's script reads."""
    steps = [(NO_SURPRISE, None), *((step, step.below) for step in STEPS)]
    return {
        "labels": reading.labels,
        "bits": [None if bits is None else round(bits, 2) for bits in reading.bits],
        "steps": [
            {
                "below": below if below and math.isfinite(below) else None,
                "colour": s.colour,
                "ink": s.ink,
                "text": s.label,
            }
            for s, below in steps
        ],
        "weights": [[packed(head) for head in layer] for layer in reading.weights],
        **{name: rounded(numbers) for name, numbers in reading.heads._asdict().items()},
    }


def packed(weights: Tensor) -> str:
    """A head's weights as base64: rows of the lower triangle one after the other, a byte each, 255 sqrt(w).

    By the root, so that small weights keep their leading digit; the error is at most 0.004, near a weight of 1.
    """
    rows, columns = torch.tril_indices(*weights.shape)
    codes = (weights[rows, columns].clamp(0, 1).sqrt() * 255).round().to(torch.uint8)
    return base64.b64encode(codes.numpy().tobytes()).decode()


def rounded(numbers: Tensor) -> list[list[float]]:
    """To four digits after the point."""
    table: Sequence[Sequence[float]] = numbers.tolist()
    return [[round(number, 4) for number in row] for row in table]
