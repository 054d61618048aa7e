"""What is printed of a plan: tables of parameters and memory, then what a training does and how long it takes."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from rich.console import Console
from rich.filesize import pick_unit_and_suffix
from rich.table import Table
from rich.text import Text

from gpt.data.batches import Batches
from gpt.device import Precision, describe_machine
from gpt.insight import terminal
from gpt.insight.plan.length import Length
from gpt.insight.plan.memory import Cached, Memory
from gpt.insight.plan.parameters import Count
from gpt.insight.plan.text import Planned
from gpt.insight.plan.timing import Timing
from gpt.model.gpt import GPT
from gpt.training.settings import TrainSettings
from gpt.training.summary import duration, noise

PREFIXES = ("", "k", "M", "G", "T", "P", "E")
"""Of the SI, a thousand times each other."""

LABELS = 14
"""Columns of the names of what is told."""


def section(title: str, content: Iterable[tuple[str, str]]) -> None:
    """Print rows under a title, their names beside them; an empty text is left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=LABELS)
    grid.add_column()
    for label, text in content:
        if text:
            grid.add_row(f"  {label}", Text(text))
    terminal.show(Text(title, "bold"), grid)


def show_model(model: GPT, parts: Mapping[str, Count], cached: Cached) -> None:
    """Parameters by part, the operations of a token, and what a text takes while it is written."""
    c = model.config
    shape = (
        f"{c.n_layer} layers of {c.d_model}, {c.n_head} query heads over {c.kv_heads} key/value, context {c.context}, "
        f"vocabulary {c.vocab_size:,}; {c.attention.name}, {c.position.name}, {c.feedforward.name}"
    )
    terminal.show(Text.assemble(("model ", "bold"), shape))
    terminal.show(parameter_table(parts, c.tied))
    token = f"{size(cached.token)} a token" if cached.token else "no more for a further token"
    section(
        "cost",
        [
            ("a token", f"{scaled(model.flops_per_token(), 'FLOP')} to train on"),
            ("cache", f"{size(cached.full)} for a text of {c.context:,} tokens while it is written; {token}"),
        ],
    )


def parameter_table(parts: Mapping[str, Count], tied: bool) -> Table:
    """A row for each part that there is; a column for what is trained where that is not all."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    frozen = any(count.trained < count.total for count in parts.values())
    table.add_column("  parameters", style="dim", min_width=LABELS)
    for column in ("number", "share", *(["trained"] if frozen else [])):
        table.add_column(column, justify="right")
    whole = Count(*map(sum, zip(*parts.values(), strict=True)))
    for part, count in {**parts, "all": whole}.items():
        note = " (and head)" if part == "embedding" and tied else ""
        trained = [f"{count.trained:,}"] if frozen else []
        if count.total:
            table.add_row(f"  {part}{note}", f"{count.total:,}", f"{count.total / whole.total:.1%}", *trained)
    return table


def show_memory(memory: Memory, settings: TrainSettings, accumulate: int, free: int | None) -> None:
    """Where the memory of an update goes, and how much there is."""
    rows = settings.batch_size // accumulate
    at_once = f"{rows} x {settings.model.context} tokens at once"
    room = "" if free is None else f"; {size(free)} are free"
    fit = settings.accumulate == "auto" and (free is None or memory.resident <= free)
    parts = f"; an update in {accumulate} parts{' that fit' if fit else ''}" if accumulate > 1 else ""
    with_what = "with what lives for a moment and what libraries take"
    section(
        "memory",
        [
            ("weights", size(memory.weights)),
            ("gradients", size(memory.gradients)),
            ("optimizer", f"{size(memory.optimizer)}, {settings.optimizer.name}"),
            ("activations", f"{size(memory.activations)}, {at_once}" + parts),
            (
                "at the peak",
                f"about {size(memory.resident)}, {with_what}{room}",
            ),
        ],
    )


def show_too_much(memory: Memory, free: int, divisible: bool) -> None:
    """Why there is no time, and what to do: where it is `divisible`, to make an update in more parts."""
    parts = "more of accumulate, a smaller batch_size or " if divisible else ""
    section(
        "time",
        [
            (
                "not measured",
                f"an update takes {size(memory.resident)}, {size(free)} are free; take {parts}a smaller model",
            )
        ],
    )


def measuring() -> AbstractContextManager[object]:
    """On a terminal, say what takes so long; drawn once a second, since what draws is measured too."""
    text = "measuring an update and an evaluation; where that pays the model is compiled first, half a minute"
    return Console(stderr=True).status(text, refresh_per_second=1)


def show_training(model: GPT, text: Planned, batches: Batches, lasts: Length) -> None:
    """What is trained on, and how often."""
    flops, tokens = model.flops_per_token() * batches.tokens_per_step * lasts.updates, batches.tokens_per_step
    seen = lasts.updates * tokens
    told = [("data", text.description)]
    if text.data:
        epoch = batches.windows * batches.context
        epochs = f"{plain(epoch / tokens)} updates; {seen / epoch:,.2f} epochs in all"
        told.append(("an epoch", f"{epoch:,} tokens, {epochs}"))
    shape = f"{batches.batch_size} x {batches.context} tokens"
    told.append(("all of it", f"{lasts.updates:,} updates of {shape}, {seen:,} tokens; {scaled(flops, 'FLOP')}"))
    section("training", told)


def show_time(timing: Timing, lasts: Length, settings: TrainSettings, precision: Precision) -> None:
    """How long it takes on this machine."""
    about = "about " if settings.budget else ""
    evaluations = f"{lasts.evaluations:,} of {timing.evaluation:,.2g} s" if timing.evaluation else ""
    updates = lasts.updates * timing.update
    section(
        "time",
        [
            describe_machine(precision.device)[0],
            ("device", f"{precision.device}; {precision.name}: {precision.reason}"),
            ("compile", timing.compiled + compiling(timing)),
            ("an update", f"{timing.update:.3g} s, {how_many(timing)}{noise(timing.disturbed)}"),
            ("evaluations", evaluations),
            ("all of it", f"{about}{duration(lasts.seconds)}, {duration(updates)} of it updates"),
        ],
    )


def compiling(timing: Timing) -> str:
    """What compiling took, where it was done."""
    if timing.compiled != "on":
        return ""
    return f"; that took {timing.compiling:.0f} s, beside the time below, and takes a few where it was done before"


def how_many(timing: Timing) -> str:
    """What the time of an update is from."""
    many = timing.updates
    return f"the median of {many} that were measured" if many > 1 else "the only one that was measured"


def columns(model: GPT, memory: Memory, lasts: Length | None) -> dict[str, str]:
    """What a sweep's table tells."""
    told = {"parameters": str(model.count_parameters()), "memory MB": f"{memory.resident / 1e6:.0f}"}
    return told if lasts is None else {**told, "steps": str(lasts.updates), "seconds": f"{lasts.seconds:.0f}"}


def plain(number: float) -> str:
    """With one decimal where it has any.

    >>> plain(596.0), plain(1_234.56)
    ('596', '1,234.6')
    """
    return f"{number:,.1f}".removesuffix(".0")


def scaled(number: float, unit: str) -> str:
    """A number of a unit for people, three figures.

    >>> scaled(9_446_144, "B"), scaled(512, "B"), scaled(38_045_388_332, "B"), scaled(3.39e13, "FLOP")
    ('9.45 MB', '512 B', '38 GB', '33.9 TFLOP')
    """
    thousands, prefix = pick_unit_and_suffix(int(number), list(PREFIXES), 1000)
    short = number / thousands
    return f"{short:.3g} {prefix}{unit}" if short < 999.5 else f"{short:,.0f} {prefix}{unit}"


def size(nbytes: float) -> str:
    """Bytes, as `scaled`."""
    return scaled(nbytes, "B")
