"""What was seen, for the terminal: surprise of each token, next tokens, the heads' numbers."""

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from gpt.insight import terminal
from gpt.insight.inspect.heads import each, remarkable
from gpt.insight.inspect.labels import LEGEND
from gpt.insight.inspect.reading import Reading
from gpt.insight.inspect.surprise import READ_AS, STEPS, Mean, step_of

BAR = 30
"""Columns of the longest bar."""

ALL_HEADS = 24
"""Where there are more, only the remarkable ones are listed."""

ASCII = str.maketrans({"█": "#", "·": "_", "↵": "$", "←": "^", "⇥": ">", "□": "_", "…": "...", "–": "-"})
"""What a terminal that has only ASCII shows instead."""


def show(reading: Reading) -> None:
    """Print it, in colours where the terminal has them and NO_COLOR does not forbid them."""
    terminal.show(page(reading, terminal.width()), in_ascii=ASCII)


def page(reading: Reading, width: int) -> Group:
    """All of it, in lines of at most `width` columns."""
    return Group(
        facts(reading),
        Text("\nSurprise of each token, in bits", "bold"),
        *lines(map(surprised, reading.labels, reading.bits), width - 2),
        legend(),
        Text(f"  {READ_AS}", "dim"),
        Text(f"  {LEGEND}", "dim"),
        Text("\nWhat may come next", "bold"),
        next_tokens(reading.next),
        Text("\nWhat the heads attend to, mean over all tokens", "bold"),
        head_table(reading),
    )


def facts(reading: Reading) -> RenderableType:
    """What reads, and how well it expected what it read."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    notices = (("notice", notice) for notice in reading.notices)
    for name, fact in (*summary(reading), *notices):
        table.add_row(name, Text(fact))
    return table


def summary(reading: Reading) -> list[tuple[str, str]]:
    """The facts in words, their names before them."""
    tokens = f"{len(reading.labels):,} token{'s' * (len(reading.labels) != 1)}"
    return [
        ("run", reading.run),
        ("attention", reading.attention),
        ("prompt", f"{tokens}; {surprise_in_words(reading.mean)}"),
    ]


def surprise_in_words(mean: Mean | None) -> str:
    """The mean surprise.

    >>> surprise_in_words(Mean(per_token=6, per_byte=1.5))
    'mean surprise 6.00 bits per token, 1.50 per byte, the first token left out'
    """
    if mean is None:
        return "no token has another before it, so there is no surprise"
    per = f"{mean.per_token:.2f} bits per token, {mean.per_byte:.2f} per byte"
    return f"mean surprise {per}, the first token left out"


def legend() -> Text:
    """The colours, and the bits that they stand for."""
    steps = [Text(f" {step.label} ", Style(color=step.ink, bgcolor=step.colour)) for step in STEPS]
    return Text(" ").join([Text(" "), Text("bits:", "dim"), *steps])


def surprised(label: str, bits: float | None) -> Text:
    """A token, coloured by its surprise, which is written after it."""
    step = step_of(bits)
    number = "–" if bits is None else f"{bits:.1f}"
    return Text.assemble((f"{label}", Style(color=step.ink, bgcolor=step.colour)), (f" {number}", "dim"))


def lines(tokens: Iterable[Text], width: int) -> Iterator[Text]:
    """Tokens side by side, two columns between; a line ends where it is full."""
    line: list[Text] = []
    used = 0
    for token in tokens:
        size = cell_len(token.plain) + 2
        if line and used + size > width:
            yield Text("  ") + Text("  ").join(line)
            line, used = [], 0
        line.append(token)
        used += size
    yield Text("  ") + Text("  ").join(line)


def next_tokens(likely: Sequence[tuple[str, float]]) -> Table:
    """Tokens, the likeliest first, their probabilities as numbers and bars, and what all others have together."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="dim", min_width=4)
    table.add_column(overflow="fold", min_width=12)
    table.add_column(justify="right")
    table.add_column(no_wrap=True)
    most = likely[0][1]
    for rank, (label, probability) in enumerate(likely, 1):
        table.add_row(str(rank), Text(label), f"{probability:.1%}", "█" * round(BAR * probability / most))
    rest = max(0.0, 1 - sum(probability for _, probability in likely))
    table.add_row("", Text("all others", "dim"), f"{rest:.1%}", "")
    return table


def head_table(reading: Reading) -> RenderableType:
    """A row for each head; of many, for those that are remarkable."""
    heads = each(reading.heads)
    many = len(heads) > ALL_HEADS
    words = remarkable(heads, 3 if many else 1)
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(5):
        table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_row("  layer", "head", "entropy, bits", "on the first token", "tokens looked back", "", style="dim")
    for head in heads:
        if not many or head in words:
            numbers = f"{head.entropy:.2f}", f"{head.first:.0%}", f"{head.back:.1f}"
            table.add_row(str(head.layer), str(head.head), *numbers, Text(words.get(head, ""), "dim"))
    left_out = [Text(f"  The page has all {len(heads)} heads.", "dim")] if many else []
    return Group(table, *left_out)
