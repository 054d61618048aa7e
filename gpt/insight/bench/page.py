"""What is printed: what was measured and where, then a table with a row for each contender."""

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from rich.table import Table
from rich.text import Text

from gpt.insight import terminal
from gpt.insight.bench import load
from gpt.insight.bench.limits import Limits
from gpt.insight.bench.race import DISTURBED, Outcome, Standing
from gpt.insight.bench.settings import BenchSettings
from gpt.model.gpt import GPT

Fact = tuple[str, str]
"""A label, and what there is to say."""

FLAGS = ("avx2", "avx512_f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "neon", "bf16", "sve", "sve2")
"""Of the processor's, as PyTorch names them, those that speed depends on."""

COLUMNS = ("precision", "tokens/s", "min - max", "x peer", "x its best", "of limit", "disturbed")

LEGEND = (
    "tokens/s: the median. x peer: the ratio to the eager peer in the same precision; x its best: in its faster one. "
    "of limit: in training of the matrix product, in decoding of the memory's bandwidth, which weights that stay in a "
    "cache may exceed."
)


def facts(model: GPT, settings: BenchSettings, device: torch.device) -> list[Fact]:
    """What is measured, and where."""
    c = model.config
    parts = f" in {settings.accumulate} parts" if settings.accumulate > 1 else ""
    clip = f"clipped at {settings.clip:g}" if settings.clip else "not clipped"
    watched = "watched in /proc/stat" if load.read().machine is not None else "not watched: there is no /proc/stat"
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
        ("machine", machine(device)),
        ("torch", f"{torch.__version__}, threads: {torch.get_num_threads()}; Python {platform.python_version()}"),
    ]


def machine(device: torch.device) -> str:
    """The processor with its flags, and what accelerator there is."""
    capabilities = torch.cpu.get_capabilities()
    flags = " ".join(flag for flag in FLAGS if capabilities.get(flag))
    name = capabilities.get("cpu_name") or platform.processor() or platform.machine()
    accelerator = f"{torch.cuda.get_device_name(device)}; " if device.type == "cuda" else ""
    return f"{accelerator}{name}, {os.cpu_count()} cores; {flags}".rstrip("; ")


def beside(peer: Any, differs: Sequence[str], model: GPT) -> str:
    """Which class the peer is, and what is not as ours."""
    import transformers

    parameters = sum(parameter.numel() for parameter in peer.parameters())
    surplus = parameters - model.count_parameters()
    size = f"{parameters:,} parameters" + (
        f", {abs(surplus):,} {'more' if surplus > 0 else 'fewer'}" if surplus else ""
    )
    return "; ".join([f"transformers {transformers.__version__}, {type(peer).__name__}, {size}", *differs])


def rows(outcome: Outcome, limits: Limits) -> Iterator[list[str]]:
    """A row for each contender of a race: its name, then a text for each of `COLUMNS`.

    The ratios are of medians, to the eager peer: in the same precision, and in the one that is its fastest.
    """
    ceiling = outcome.ceiling(limits)
    peers = {s.entry.precision: s.speed for s in outcome.standings if is_peer(s) and s.entry.compile_seconds is None}
    for standing in outcome.standings:
        entry, speed, speeds = standing.entry, standing.speed, standing.speeds
        compiled = "" if entry.compile_seconds is None else f", compiled in {entry.compile_seconds:.0f} s"
        yield [
            f"{entry.name}{compiled}",
            entry.precision,
            count(speed),
            f"{count(min(speeds))} - {count(max(speeds))}",
            times(speed, peers.get(entry.precision)),
            times(speed, max(peers.values(), default=None)),
            f"{speed / ceiling[entry.precision]:.0%}",
            f"{standing.disturbed} of {len(speeds)}" if standing.disturbed else "",
        ]


def is_peer(standing: Standing) -> bool:
    """Whether it is not ours."""
    return not standing.entry.name.startswith("ours")


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


def table(outcomes: Iterable[Outcome], limits: Limits) -> Table:
    """All races, each under its title."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column("")
    for column in COLUMNS:
        made.add_column(column, justify="right", no_wrap=True)
    for outcome in outcomes:
        made.add_row(Text(outcome.title, "bold"))
        for name, *row in rows(outcome, limits):
            made.add_row(Text(f"  {name}"), *row)
    return made


def show_facts(told: Iterable[Fact]) -> None:
    """Print facts, their labels beside them."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for label, text in told:
        grid.add_row(label, Text(text))
    terminal.show(grid)


def show_outcomes(outcomes: Iterable[Outcome], limits: Limits) -> None:
    """Print the table, and how it is read."""
    products = ", ".join(f"{flops / 1e9:,.0f} GFLOP/s in {name}" for name, flops in limits.flops.items())
    measured = (
        f"Limits, the best of what was measured: matrix product {products}; memory {limits.bandwidth / 1e9:.1f} GB/s"
    )
    terminal.show(Text(), table(outcomes, limits), Text(), Text(measured), Text(LEGEND, "dim"))
