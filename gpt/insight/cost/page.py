"""What is told of the costs of attention: tables and sentences, all computed from what was measured."""

from collections.abc import Iterator, Sequence

from gpt.insight.cost.costs import Costs, Heads, Series
from gpt.insight.cost.growth import Fit, fitted
from gpt.insight.cost.plot import draw, draw_generations
from gpt.insight.study import Cell, Findings, Table

BASE = "sdpa"
"""The variant that the others are compared with: it sees and keeps all."""

MS, US, MB, KIB = 1e3, 1e6, 1e-6, 1 / 1024
"""What seconds and bytes are multiplied by to be milliseconds, microseconds, megabytes and kibibytes."""


def findings(costs: Costs) -> Findings:
    """All tables, figures and sentences."""
    tables = {
        "training": by_length(costs, costs.seconds, "Training time: forward and backward of one layer", "ms", MS),
        "speed": speed_table(costs),
        "memory": by_length(costs, costs.peak, "Training memory: the peak, beyond its inputs", "MB", MB),
        "decoding": by_length(costs, costs.token_seconds, "Decoding time of a token, after all others", "µs", US),
        "cache": by_length(costs, costs.cache, "Memory of a layer that has seen so many tokens", "KiB", KIB),
        "exponents": exponents_table(costs),
        "heads": heads_table(costs.heads, costs.lengths[-1]),
        "generation": generation_table(costs),
    }
    figures = {"complexity": draw(costs), "generation": draw_generations(costs.generations)}
    return Findings(tables, figures, list(sentences(costs)))


def by_length(costs: Costs, series: Series, title: str, unit: str, scale: float) -> Table:
    """A row for each length, a column for each variant; in place of what was left out, why."""

    def cell(name: str, length: int) -> Cell:
        cost = series.known(name).get(length)
        return series.left_out.get((name, length)) if cost is None else cost * scale

    rows = [[length, *(cell(name, length) for name in costs.names)] for length in costs.lengths]
    return Table(f"{title} ({unit})", ["tokens", *(f"{name} ({unit})" for name in costs.names)], rows)


def speed_table(costs: Costs) -> Table:
    """How many times as fast as `BASE` each variant trains."""
    rows = [[length, *(speed(costs, name, length) for name in costs.names)] for length in costs.lengths]
    return Table(f"Training: how many times as fast as {BASE}", ["tokens", *costs.names], rows)


def speed(costs: Costs, name: str, length: int) -> float | None:
    """The time of `BASE` divided by a variant's; None where one of them was left out."""
    base, own = (costs.seconds.known(of).get(length) for of in (BASE, name))
    return None if base is None or own is None else base / own


def exponents_table(costs: Costs) -> Table:
    """The exponents of training, where some lengths may be missing, and of decoding, and what they are fitted over."""
    rows: list[list[Cell]] = []
    for name in costs.names:
        fits = [
            fitted(series.known(name), costs.fit)
            for series in (costs.seconds, costs.peak, costs.token_seconds, costs.cache)
        ]
        time, memory, token_time, cache = (fit and fit.exponent for fit in fits)
        rows.append([name, time, memory, over(fits[0]), token_time, cache, over(fits[2])])
    columns = ["attention", "training time", "memory", "over", "decoding time", "cache", "over"]
    return Table("Exponents p of the power law cost = c · tokens^p, by least squares of logarithms", columns, rows)


def over(fit: Fit | None) -> str:
    """The lengths of a fit.

    >>> over(Fit(2.0, (4096, 8192, 16384)))
    '3 lengths, 4,096 - 16,384'
    """
    return f"{len(fit.lengths)} lengths, {fit.lengths[0]:,} - {fit.lengths[-1]:,}" if fit else ""


def heads_table(heads: Sequence[Heads], length: int) -> Table:
    """What keys and values take."""
    rows: list[list[Cell]] = [
        [h.kind, h.n_kv_head, h.nbytes / length, h.by_formula / length, h.nbytes * MB] for h in heads
    ]
    columns = ["kind", "n_kv_head", "bytes per token", "2 · n_kv_head · head_dim · bytes", f"MB at {length:,} tokens"]
    return Table("The cache of keys and values in one layer, measured and by formula", columns, rows)


def generation_table(costs: Costs) -> Table:
    """What a token takes at the beginning and at the end of a long text."""
    rows: list[list[Cell]] = [[g.name, g.first * MS, g.last * MS, g.ratio, g.cache * KIB] for g in costs.generations]
    tokens = len(costs.generations[0].runs[0])
    columns = ["attention", "first tenth (ms)", "last tenth (ms)", "last / first", "cache of all layers (KiB)"]
    return Table(
        f"A model of two layers writes {tokens:,} tokens: the time of one, at first and at last", columns, rows
    )


def sentences(costs: Costs) -> Iterator[str]:
    """What one sees."""
    fits = {name: fitted(costs.seconds.known(name), costs.fit) for name in costs.names}
    told = [f"{fit.exponent:.2f} for {name} ({over(fit)})" for name, fit in fits.items() if fit]
    yield f"Training time grows as tokens^p, with p = {', '.join(told)}."
    for length in [length for length in costs.lengths if length in costs.seconds.known(BASE)][-1:]:
        ratios = {name: speed(costs, name, length) for name in costs.names if name != BASE}
        faster = [f"{name} {ratio:.3g} times" for name, ratio in ratios.items() if ratio]
        yield f"On {length:,} tokens, compared with {BASE}, training is as fast as: {', '.join(faster)}."
    longest = costs.lengths[-1]
    held = [f"{costs.cache.known(name)[longest] * KIB:,.0f} KiB for {name}" for name in costs.names]
    yield f"With {longest:,} tokens seen, the memory of one layer is {', '.join(held)}."
    shares = [f"{h.kind} with {h.n_kv_head} takes {h.nbytes / costs.heads[0].nbytes:.0%}" for h in costs.heads[1:]]
    yield f"A cache of keys and values is as large as it has heads: {', '.join(shares)} of what MHA takes."
    ratios_of = [f"{g.ratio:.2f} times with {g.name}" for g in costs.generations]
    yield f"Of a long text the last tenth takes, a token, {', '.join(ratios_of)} what the first one takes."
    for name in costs.names:
        left = [(length, why) for (of, length), why in costs.seconds.left_out.items() if of == name]
        if left:
            yield f"{name} was not trained on {', '.join(f'{length:,} tokens ({why})' for length, why in left)}."
    if costs.disturbed:
        yield f"{costs.disturbed} of {costs.measurements} times were measured while other programs used the processor."
