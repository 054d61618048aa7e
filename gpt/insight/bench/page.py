"""What is printed: what was measured and where, then a table with a row for each contender."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from rich.table import Table
from rich.text import Text

from gpt.contention import DISTURBED, read
from gpt.device import DTYPES, describe_machine
from gpt.insight import terminal
from gpt.insight.bench.limits import Limits
from gpt.insight.bench.loss import Finish
from gpt.insight.bench.race import OURS, Outcome, Rules
from gpt.insight.bench.settings import BenchSettings
from gpt.model.gpt import GPT

Fact = tuple[str, str]
"""A label, and what there is to say."""

NAME = 18
"""Characters of the column of names, at least."""

FINISH = (
    "recipe", "steps", "validation\nloss", "training\ns", "R\ns", "of R", "evaluating\ns", "probing\ns",
    "compiling\ns", "cached\ns", "others",
)  # fmt: skip

FINISH_LEGEND = (
    "validation loss: nats per token of the last weights, over the whole split. training: the loop, without what is "
    "apart: evaluating, probing the speed, compiling with an empty cache; cached: again, with a filled one. "
    "R: 1,536,000 tokens / (1.3 x the tokens/s of transformers, eager, fp32, of GPT-2 with 4 layers of 128 and 4 heads "
    "in updates of 12 x 64), measured before and after. others: what other programs used of the processor meanwhile."
)

LEGEND = (
    "tokens/s: the median. x NAME: the ratio to that peer, eager, in numbers of as many bytes; x fastest: to the "
    "fastest of all eager peers in any precision. "
    "of limit: in training of the matrix product, in decoding of the memory's bandwidth, which weights that stay in a "
    "cache may exceed."
)


def facts(model: GPT, settings: BenchSettings, device: torch.device) -> list[Fact]:
    """What is measured, and where."""
    c = model.config
    parts = f" in {settings.accumulate} parts" if settings.accumulate > 1 else ""
    clip = f"clipped at {settings.clip:g}" if settings.clip else "not clipped"
    watched = "watched in /proc/stat" if read().machine is not None else "not watched: there is no /proc/stat"
    return [
        (
            "model",
            f"{model.count_parameters():,} parameters: {c.n_layer} layers of {c.d_model}, {c.n_head} query heads over "
            f"{c.kv_heads} key/value, context {c.context}, vocabulary {c.vocab_size:,}, dropout {c.dropout:g}; "
            f"{c.attention.name}, {c.position.name}, {c.feedforward.name}",
        ),
        (
            "training",
            f"updates of {settings.batch_size} x {c.context} tokens{parts}, {clip}, {settings.optimizer.name}",
        ),
        ("decoding", f"{settings.new_tokens} tokens after {settings.prompt_tokens}, greedy, with a cache"),
        (
            "measured",
            f"in turn, {settings.repeats} times for {settings.seconds:g} s or longer; what others use of the processor "
            f"is {watched}, above {DISTURBED:.0%} a measurement is repeated, up to {settings.redos} times",
        ),
        *describe_machine(device),
    ]


def rows(outcome: Outcome, limits: Limits, peers: Sequence[str]) -> Iterator[list[str]]:
    """A row for each contender of a race: its name, then a text for each of `columns`.

    Ratios are of medians: to each peer, eager, in numbers of the same size; and to the fastest of all eager peers.
    """
    ceiling, eager = outcome.ceiling(limits), eager_speeds(outcome)
    for standing in outcome.standings:
        entry, speed, speeds = standing.entry, standing.speed, standing.speeds
        quantized = f", {entry.quantize}" if entry.quantize else ""
        compiled = "" if entry.compile_seconds is None else f", compiled in {entry.compile_seconds:.0f} s"
        size = DTYPES[entry.precision].itemsize
        yield [
            f"{entry.name}{quantized}{compiled}",
            entry.precision,
            count(speed),
            f"{count(min(speeds))} - {count(max(speeds))}",
            *(times(speed, eager.get((peer, size))) for peer in peers),
            times(speed, max(eager.values(), default=None)),
            f"{speed / ceiling[entry.quantize or entry.precision]:.0%}",
            f"{standing.disturbed} of {len(speeds)}" if standing.disturbed else "",
        ]


def eager_speeds(outcome: Outcome) -> dict[tuple[str, int], float]:
    """Of each peer, by its name and the bytes of a number."""
    theirs = (s for s in outcome.standings if is_peer(s.entry.name) and s.entry.compile_seconds is None)
    return {(s.entry.name, DTYPES[s.entry.precision].itemsize): s.speed for s in theirs}


def peers_in(outcomes: Iterable[Outcome]) -> list[str]:
    """The names of all that are not ours."""
    names = (standing.entry.name for outcome in outcomes for standing in outcome.standings)
    return [name for name in dict.fromkeys(names) if is_peer(name)]


def columns(peers: Sequence[str]) -> list[str]:
    r"""The heads of a table's columns, but the first.

    >>> columns(["litgpt"])[3:5]
    ['x\nlitgpt', 'x\nfastest']
    """
    return ["precision", "tokens/s", "min - max", *(f"x\n{p}" for p in peers), "x\nfastest", "of\nlimit", "disturbed"]


def is_peer(name: str) -> bool:
    """Whether a contender's name is not one of ours."""
    return not name.startswith(OURS)


def count(speed: float) -> str:
    """Tokens per second, with a decimal where there are few.

    >>> count(12345.6), count(7.71)
    ('12,346', '7.7')
    """
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.1f}"


def times(speed: float, other: float | None) -> str:
    """A ratio.

    >>> times(30, 20), times(30, None)
    ('1.50', '')
    """
    return "" if other is None else f"{speed / other:.2f}"


def table(outcomes: Sequence[Outcome], limits: Limits) -> Table:
    """All races, each under its title."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column("", overflow="fold", min_width=NAME)
    peers = peers_in(outcomes)
    for column in columns(peers):
        made.add_column(column, justify="right", no_wrap=True)
    for outcome in outcomes:
        made.add_row(Text(outcome.title, "bold"))
        for name, *row in rows(outcome, limits, peers):
            made.add_row(Text(f"  {name}"), *row)
    return made


def finish_rows(finishes: Iterable[Finish]) -> Iterator[list[str]]:
    """A row for each recipe: a text for each of `FINISH`."""
    for recipe, state, cached, bar, others in finishes:
        apart = [state.asides.get(what, 0.0) for what in ("evaluating", "probing", "compiling")]
        yield [
            recipe,
            f"{state.step:,}",
            "n/a" if state.validation_loss is None else f"{state.validation_loss:.4f}",
            f"{state.training:,.1f}",
            "" if bar is None else f"{bar:,.1f}",
            "" if bar is None else f"{state.training / bar:.2f}",
            *(f"{seconds:,.1f}" for seconds in apart[: 3 if cached else 2]),
            *([f"{cached:,.1f}"] if cached else ["", ""]),
            "" if others is None else f"{others:.0%}",
        ]


def show_finishes(finishes: Iterable[Finish], rules: Rules) -> None:
    """Print the race to a loss, and how it is read."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, column in enumerate(FINISH):
        made.add_column(column, justify="right" if number else "left", no_wrap=bool(number))
    for row in finish_rows(finishes):
        made.add_row(*map(Text, row))
    machine = dict(describe_machine(rules.device))["machine"]
    terminal.show(Text(), Text("loss", "bold"), made, Text(), Text(machine), Text(FINISH_LEGEND, "dim"))


def columns_of_sweep(model: GPT, memory: int | None, outcomes: Iterable[Outcome]) -> dict[str, str]:
    """What a sweep's table tells of one of its jobs: ours, in its fastest form, in tokens/s."""
    told = {"parameters": str(model.count_parameters())}
    if memory is not None:
        told["memory MB"] = f"{memory / 1e6:.0f}"
    for outcome in outcomes:
        told[outcome.title] = f"{max(s.speed for s in outcome.standings if s.entry.name == OURS):.0f}"
    return told


def show_facts(told: Iterable[Fact]) -> None:
    """Print facts, their labels beside them."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for label, text in told:
        grid.add_row(label, Text(text))
    terminal.show(grid)


def show_outcomes(outcomes: Sequence[Outcome], limits: Limits) -> None:
    """Print the table, and how it is read."""
    products = ", ".join(f"{flops / 1e9:,.0f} GFLOP/s in {name}" for name, flops in limits.flops.items())
    measured = (
        f"Limits, the best of what was measured: matrix product {products}; memory {limits.bandwidth / 1e9:.1f} GB/s"
    )
    terminal.show(Text(), table(outcomes, limits), Text(), Text(measured), Text(LEGEND, "dim"))
