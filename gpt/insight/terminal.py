"""How what was found is printed: as wide as the terminal, and so that it reads as well in a file or through a pipe."""

from collections.abc import Mapping
from types import MappingProxyType

from rich.console import Console, RenderableType

WIDTH = 120
"""Columns where the output is no terminal."""


def width() -> int:
    """Columns of a line."""
    console = Console()
    return console.width if console.is_terminal else WIDTH


def show(*parts: RenderableType, in_ascii: Mapping[int, str] = MappingProxyType({})) -> None:
    """To standard output, each part below the one before, without blanks at the ends of lines.

    In colours where the terminal has them and NO_COLOR does not forbid them.

    Args:
        parts: what is shown.
        in_ascii: of signs, as code points, what a terminal that has only ASCII shows instead.
    """
    console = Console(highlight=False, width=width())
    with console.capture() as captured:
        console.print(*parts, sep="\n")
    for line in captured.get().translate(in_ascii if console.options.ascii_only else {}).splitlines():
        print(line.rstrip(), flush=True)
