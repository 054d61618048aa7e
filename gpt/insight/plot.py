"""Pictures: matplotlib without pyplot, a display or a state of its own; texts in any script that a font here has.

Make a figure, draw on its axes, save it:

    figure, axes = new_figure(columns=2)
    axes[0, 0].plot([1, 2], [3, 4])
    axes[0, 1].set_title(drawable(text_of_the_users))
    save(figure, Path("pictures/two.png"))
"""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

DPI = 144
"""Dots of a picture in an inch."""

LATIN = "DejaVu Sans"
"""It comes with matplotlib, and has letters, signs and arrows, but no Japanese."""

CJK = (
    "Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic", "Meiryo", "MS Gothic", "IPAexGothic",
    "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "Source Han Sans", "WenQuanYi Zen Hei",
)  # fmt: skip
"""Fonts with Chinese and Japanese characters that a machine may have, the best first."""

NOWHERE = "□"
"""In place of a character that no font here has."""


def new_figure(rows: int = 1, columns: int = 1, width: float = 8.0, height: float = 4.5) -> tuple[Figure, np.ndarray]:
    """A figure and its axes, an array of shape (rows, columns).

    Args:
        rows: of axes.
        columns: of axes.
        width: of the whole figure, in inches of 144 dots.
        height: likewise.
    """
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure, its kind by the path's suffix, and make the folder; the file is the old or the new one.

    Raises:
        OSError: it cannot be written there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontfamily(families())
    aside = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        # without matplotlib's version in it, the same figure is the same file
        figure.savefig(aside, metadata={"Software": None} if path.suffix == ".png" else None)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def drawable(text: str) -> str:
    r"""A text as it stands, for a title, a label or a tick: no $ begins a formula, and no character is missing.

    >>> drawable("私 costs $5"), drawable("\U000f0000")
    ('私 costs \\$5', '□')
    """
    drawn = (c if any(ord(c) in known for known in _characters()) else NOWHERE for c in text)
    return "".join(drawn).replace("$", r"\$")


@cache
def families() -> list[str]:
    """The fonts that a text is drawn with; each character by the first that has it.

    The second one is a font that is installed, else the one that the package matplotlib-fontja brings.
    """
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [LATIN, next((name for name in CJK if name in installed), None) or _shipped()]


def _shipped() -> str:
    """The name of the font in matplotlib-fontja, registered; the package itself would import pyplot."""
    spec = find_spec("matplotlib_fontja")
    assert spec, "matplotlib-fontja is one of the dependencies"
    file = Path(str(spec.origin)).parent / "fonts" / "ipaexg.ttf"
    font_manager.fontManager.addfont(file)
    return font_manager.FontProperties(fname=file).get_name()


@cache
def _characters() -> list[frozenset[int]]:
    """The code points that each of the fonts has."""
    files = (font_manager.findfont(name) for name in families())
    return [frozenset(font_manager.get_font(file).get_charmap()) for file in files]
