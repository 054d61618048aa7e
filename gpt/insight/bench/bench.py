"""`python -m gpt bench`: make the contenders, run the races, print what was found."""

import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path

import torch

from gpt.device import DTYPES, Precision, check_memory, choose_device, choose_precision, prepare_device
from gpt.generation.decoder.compiled import Compiled
from gpt.generation.decoder.prepared import Quantize
from gpt.insight.bench import page
from gpt.insight.bench.decoding import OurDecoding, random_prompts
from gpt.insight.bench.limits import Limits, decoding_ceiling, measure_limits, training_ceiling
from gpt.insight.bench.loss import run_recipes
from gpt.insight.bench.peer import Peer, built_peers
from gpt.insight.bench.progress import bar
from gpt.insight.bench.race import Contender, Entry, Outcome, Race, Rules, run
from gpt.insight.bench.settings import BenchSettings
from gpt.insight.bench.training import OurTraining, Training
from gpt.insight.cost.memory import peak_bytes
from gpt.model.gpt import GPT


def bench(settings: BenchSettings, _: Path | None) -> dict[str, str]:
    """Measure, and print what was found; of the speeds, what a sweep's table tells, by column."""
    device = choose_device(settings.device)
    precisions = precisions_of(settings, device)
    prepare_device(device)
    torch.manual_seed(settings.seed)
    rules = Rules(settings.repeats, settings.seconds, settings.redos, device)
    told = race_speeds(settings, precisions, rules) if {"training", "decoding"} & set(settings.races) else {}
    if "loss" in settings.races:
        page.show_finishes(list(run_recipes(settings, rules)), rules)
    return told


def race_speeds(settings: BenchSettings, precisions: Sequence[Precision], rules: Rules) -> dict[str, str]:
    """Measure the speed of training and decoding, and the machine's limits around each race; what a sweep tells."""
    device = rules.device
    with torch.device("meta"):
        check_memory(GPT(settings.shape), device)
    model = GPT(settings.shape).to(device)
    peers, told = peers_of(model, settings)
    page.show_facts([*page.facts(model, settings, device), *told])
    memory = training_memory(model, settings, precisions[-1]) if "training" in settings.races else None
    outcomes, limits = raced(model, peers, precisions, settings, rules)
    page.show_outcomes(outcomes, limits)
    return page.columns_of_sweep(model, memory, outcomes)


def raced(
    model: GPT, peers: Sequence[Peer], precisions: Sequence[Precision], settings: BenchSettings, rules: Rules
) -> tuple[list[Outcome], Limits]:
    """Each race, and the best that the machine did around them."""
    names = [precision.name for precision in precisions]
    limits, outcomes = measure_limits(rules.device, names), []
    with bar(("training" in settings.races) + len(settings.decode_batch) * ("decoding" in settings.races)) as advance:
        # map lets go of a race, and so of its optimizers, before the next one is made
        for outcome in map(partial(run, rules=rules, advance=advance), races(model, peers, precisions, settings)):
            outcomes.append(outcome)
            limits = limits.or_better(measure_limits(rules.device, names))
    return outcomes, limits


def training_memory(model: GPT, settings: BenchSettings, precision: Precision) -> int | None:
    """The bytes of gradients, optimizer and activations of an update, at its peak; None where that is not known."""
    OurTraining(model, settings).eager(precision).work()  # what is loaded at the first call is not its own
    return peak_bytes(OurTraining(model, settings).eager(precision).work, precision.device)


def precisions_of(settings: BenchSettings, device: torch.device) -> list[Precision]:
    """Those that are measured: for auto fp32, and the one that train.py would choose.

    Raises:
        UserError: a precision that the device lacks.
    """
    chosen = choose_precision(settings.precision, device)
    if settings.precision != "auto" or chosen.name == "fp32":
        return [chosen]
    return [choose_precision("fp32", device), chosen]


def peers_of(model: GPT, settings: BenchSettings) -> tuple[list[Peer], list[page.Fact]]:
    """The peers of our model, and what is to be said of them, of those too that there are not."""
    built = list(built_peers(model, settings.peers))
    told = [(peer.name, peer.description) if isinstance(peer, Peer) else peer for peer in built]
    return [peer for peer in built if isinstance(peer, Peer)], told


def races(
    model: GPT, peers: Sequence[Peer], precisions: Sequence[Precision], settings: BenchSettings
) -> Iterator[Race]:
    """Training, then decoding in each number of texts; each race's contenders are made when it is its turn."""
    if "training" in settings.races:
        training = training_contenders(model, peers, precisions, settings)
        yield Race("training", list(training), partial(training_ceiling, model))
    if "decoding" not in settings.races:
        return
    copies = [(precision, in_precision(model, precision)) for precision in precisions]
    for rows in settings.decode_batch:
        ceiling = partial(decoding_ceiling, model, rows, settings.prompt_tokens, settings.new_tokens)
        yield Race(f"decoding, batch {rows}", list(decoding_contenders(copies, peers, settings, rows)), ceiling)


def training_contenders(
    model: GPT, peers: Sequence[Peer], precisions: Sequence[Precision], settings: BenchSettings
) -> Iterator[Contender]:
    """Ours and the peers' in each precision, eager, and compiled where that is set."""
    theirs = [peer.training(settings) for peer in peers]
    sides: list[Training] = [OurTraining(model, settings), *(side for side in theirs if side)]
    for precision in precisions:
        yield from (side.eager(precision) for side in sides)
    if settings.compile == "off":
        return
    for precision in precisions:
        for contender in (side.compiled(precision) for side in sides):
            if contender:
                yield contender


def decoding_contenders(
    models: Sequence[tuple[Precision, GPT]], peers: Sequence[Peer], settings: BenchSettings, rows: int
) -> Iterator[Contender]:
    """Ours and the peers' in each precision."""
    prompts = random_prompts(settings, rows)
    for precision, ours in models:
        yield Contender(Entry("ours", precision.name), OurDecoding(ours, prompts, settings.new_tokens))
        yield from (peer.decoding(precision, prompts, settings.new_tokens) for peer in peers)
    precision, ours = models[-1]
    if ours.embedding.weight.device.type == "cpu":
        entry = Entry("ours", precision.name, quantize="int8")
        yield Contender(entry, OurDecoding(ours, prompts, settings.new_tokens, entry.quantize))
    if settings.compile != "off":
        yield from compiled_decoding(models, prompts, settings)


def compiled_decoding(
    models: Sequence[tuple[Precision, GPT]], prompts: Sequence[Sequence[int]], settings: BenchSettings
) -> Iterator[Contender]:
    """Ours compiled now, in each precision; without those of which a warning has told that it failed."""
    kinds: list[tuple[Precision, GPT, Quantize | None]] = [(precision, ours, None) for precision, ours in models]
    if kinds[-1][1].embedding.weight.device.type == "cpu":
        kinds.append((*kinds[-1][:2], "int8"))
    for precision, ours, quantize in kinds:
        work, start = OurDecoding(ours, prompts, settings.new_tokens, quantize, settings.compile), time.perf_counter()
        work()
        if isinstance(work.decoder, Compiled):
            yield Contender(Entry("ours", precision.name, time.perf_counter() - start, quantize), work)


def in_precision(model: GPT, precision: Precision) -> GPT:
    """A copy of a model, all weights in the precision, in evaluation mode."""
    return deepcopy(model).to(DTYPES[precision.name]).eval()
