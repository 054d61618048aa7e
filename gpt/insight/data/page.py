"""What was seen of a text as a page for the terminal: numbers by section, an excerpt, and the advice last."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpt.insight.data import rows
from gpt.insight.data.advice import advise
from gpt.insight.data.excerpt import excerpt
from gpt.insight.data.look import Look

EXCERPT_TOKENS = 200
"""Tokens of the excerpt, at most."""

EXCERPT_LINES = 12
"""Its lines, at most: where lines are short, two hundred tokens are many of them."""

LEGEND = "· space  ↵ line feed  ← carriage return  ⇥ tab  <E6> a byte of a character's part"
"""What the signs in the excerpt mean."""

LABELS = 20
"""Columns of the names of what is told."""

BARS = 8
"""Rows of a histogram, at most."""

BAR = 30
"""Columns of its longest bar."""


def page(look: Look, width: int, colour: bool) -> Group:
    """The page.

    Args:
        look: what was seen.
        width: columns there are.
        colour: whether backgrounds can tell tokens apart.
    """
    ids = look.prepared.train.tokens[:EXCERPT_TOKENS].tolist()
    lines = excerpt(look.prepared.tokenizer, ids, width - 2, EXCERPT_LINES, colour)
    return Group(
        grid(rows.text(look)),
        *section("Splits", splits(look)),
        *section("This training", grid(rows.training(look))),
        *section("Documents", grid(rows.documents(look)), *histogram(look)),
        *section("Characters", grid(rows.characters(look))),
        *section("Vocabulary", grid(rows.vocabulary(look))),
        *section("Validation text that also stands in training", grid(rows.overlap(look))),
        *section("Signs of trouble", grid(rows.troubles(look))),
        *section("The first training tokens", *(Text("  ") + line for line in lines), Text(f"  {LEGEND}", "dim")),
        *section("What to know", *advice(look)),
    )


def section(title: str, *body: RenderableType) -> list[RenderableType]:
    """A part of the page under its title; nothing where there is nothing to tell."""
    told = [part for part in body if not isinstance(part, Table) or part.row_count]
    return [Text(f"\n{title}", "bold"), *told] if told else []


def grid(content: Iterable[rows.Row]) -> Table:
    """Rows, their names beside them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=LABELS)
    table.add_column(overflow="fold")
    for key, value in content:
        table.add_row(f"  {key}", Text(value))
    return table


def splits(look: Look) -> Table:
    """How much text there is, a column for each split."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=LABELS)
    for _ in look.splits:
        table.add_column(justify="right", min_width=12)
    table.add_row("", *look.splits, style="dim")
    total = sum(seen.text_bytes for seen in look.splits.values())
    columns = [rows.split(seen, look.tokens_of(split), total) for split, seen in look.splits.items()]
    for across in zip(*columns, strict=True):
        table.add_row(f"  {across[0][0]}", *(value for _, value in across))
    return table


def histogram(look: Look) -> list[RenderableType]:
    """The lengths of training documents as bars, where they differ."""
    bars = look.train.lengths.histogram(BARS)
    if len(bars) < 2:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", justify="right", min_width=LABELS)
    table.add_column()
    most = max(many for *_, many in bars)
    for low, high, many in bars:
        bar = "█" * max(bool(many), round(BAR * many / most))
        table.add_row(f"{low:,}-{high:,}" if low < high else f"{low:,}", Text(f"{bar} {many:,}"))
    return [Text(), table]


def advice(look: Look) -> list[RenderableType]:
    """The sentences, after one that says so where none is a warning."""
    said = advise(look)
    table = Table.grid(padding=(0, 1, 0, 0))
    for warns, sentence in said:
        table.add_row(Text("  !" if warns else "  ·", "bold yellow" if warns else "dim"), Text(sentence))
    quiet = [] if any(warns for warns, _ in said) else [Text("  Nothing to warn of.")]
    return [*quiet, table]
