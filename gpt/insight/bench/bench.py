"""`python -m gpt bench`: make the contenders, run the races, print what was found."""

import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gpt.device import DTYPES, Precision, check_memory, choose_device, choose_precision, prepare_device
from gpt.generation.decoder.compiled import Compiled
from gpt.generation.decoder.prepared import Quantize
from gpt.insight.bench import page
from gpt.insight.bench.decoding import OurDecoding, PeerDecoding, random_prompts
from gpt.insight.bench.limits import decoding_ceiling, measure_limits, training_ceiling
from gpt.insight.bench.peer import NoPeerError, peer_of
from gpt.insight.bench.progress import bar
from gpt.insight.bench.race import Contender, Entry, Race, Rules, run
from gpt.insight.bench.settings import BenchSettings
from gpt.insight.bench.training import OurTraining, PeerTraining, Training
from gpt.model.gpt import GPT


def bench(settings: BenchSettings, _: Path | None) -> None:
    """Measure, and print what was found."""
    device = choose_device(settings.device)
    precisions = precisions_of(settings, device)
    prepare_device(device)
    with torch.device("meta"):
        check_memory(GPT(settings.shape), device)
    torch.manual_seed(settings.seed)
    model = GPT(settings.shape).to(device)
    peer, peer_facts = build_peer(model, settings)
    page.show_facts([*page.facts(model, settings, device), *peer_facts])
    rules = Rules(settings.repeats, settings.seconds, settings.redos, device)
    names = [precision.name for precision in precisions]
    limits, outcomes = measure_limits(device, names), []
    with bar(1 + len(settings.decode_batch)) as advance:
        # map lets go of a race, and so of its optimizers, before the next one is made
        for outcome in map(partial(run, rules=rules, advance=advance), races(model, peer, precisions, settings)):
            outcomes.append(outcome)
            limits = limits.or_better(measure_limits(device, names))
    page.show_outcomes(outcomes, limits)


def precisions_of(settings: BenchSettings, device: torch.device) -> list[Precision]:
    """Those that are measured: for auto fp32, and the one that train.py would choose.

    Raises:
        UserError: a precision that the device lacks.
    """
    chosen = choose_precision(settings.precision, device)
    if settings.precision != "auto" or chosen.name == "fp32":
        return [chosen]
    return [choose_precision("fp32", device), chosen]


def build_peer(model: GPT, settings: BenchSettings) -> tuple[Any, list[page.Fact]]:
    """The peer of our model, on its device, and what is to be said of it; None where there is none."""
    if settings.peer is None:
        return None, []
    try:
        peer = peer_of(model)
        built = peer.build()
    except NoPeerError as error:
        return None, [("peer", f"none: {error}")]
    return built.to(model.embedding.weight.device), [("peer", page.beside(built, peer.differs, model))]


def races(model: GPT, peer: Any, precisions: Sequence[Precision], settings: BenchSettings) -> Iterator[Race]:
    """Training, then decoding in each number of texts; each race's contenders are made when it is its turn."""
    training = training_contenders(model, peer, precisions, settings)
    yield Race("training", list(training), partial(training_ceiling, model))
    copies = [(p, in_precision(model, p), in_precision(peer, p) if peer else None) for p in precisions]
    for rows in settings.decode_batch:
        ceiling = partial(decoding_ceiling, model, rows, settings.prompt_tokens, settings.new_tokens)
        yield Race(f"decoding, batch {rows}", list(decoding_contenders(copies, settings, rows)), ceiling)


def training_contenders(
    model: GPT, peer: Any, precisions: Sequence[Precision], settings: BenchSettings
) -> Iterator[Contender]:
    """Ours and the peer's in each precision, eager, and compiled where that is set."""
    sides: list[Training] = [OurTraining(model, settings), *([PeerTraining(peer, settings)] if peer else [])]
    for precision in precisions:
        yield from (side.eager(precision) for side in sides)
    if settings.compile == "off":
        return
    for precision in precisions:
        for contender in (side.compiled(precision) for side in sides):
            if contender:
                yield contender


def decoding_contenders(
    models: Sequence[tuple[Precision, GPT, Any]], settings: BenchSettings, rows: int
) -> Iterator[Contender]:
    """Ours and the peer's in each precision."""
    prompts = random_prompts(settings, rows)
    for precision, ours, peer in models:
        yield Contender(Entry("ours", precision.name), OurDecoding(ours, prompts, settings.new_tokens))
        if peer:
            yield Contender(Entry("transformers", precision.name), PeerDecoding(peer, prompts, settings.new_tokens))
    precision, ours, _ = models[-1]
    if ours.embedding.weight.device.type == "cpu":
        yield Contender(Entry("ours, int8", precision.name), OurDecoding(ours, prompts, settings.new_tokens, "int8"))
    if settings.compile != "off":
        yield from compiled_decoding(models, prompts, settings)


def compiled_decoding(
    models: Sequence[tuple[Precision, GPT, Any]], prompts: Sequence[Sequence[int]], settings: BenchSettings
) -> Iterator[Contender]:
    """Ours compiled now, in each precision; without those of which a warning has told that it failed."""
    kinds: list[tuple[Precision, GPT, Quantize | None]] = [(precision, ours, None) for precision, ours, _ in models]
    if kinds[-1][1].embedding.weight.device.type == "cpu":
        kinds.append((*kinds[-1][:2], "int8"))
    for precision, ours, quantize in kinds:
        work, start = OurDecoding(ours, prompts, settings.new_tokens, quantize, settings.compile), time.perf_counter()
        work()
        if isinstance(work.decoder, Compiled):
            name = f"ours, {quantize}" if quantize else "ours"
            yield Contender(Entry(name, precision.name, time.perf_counter() - start), work)


def in_precision(model: Any, precision: Precision) -> Any:
    """A copy of a model, all weights in the precision, in evaluation mode."""
    return deepcopy(model).to(DTYPES[precision.name]).eval()
