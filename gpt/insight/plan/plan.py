"""`python -m gpt plan`: what a training would cost, before it begins."""

from bisect import bisect_left
from pathlib import Path

import torch

from gpt.device import Precision, choose_device, prepare_device
from gpt.insight.cost.memory import free_bytes
from gpt.insight.plan import page
from gpt.insight.plan.length import length
from gpt.insight.plan.memory import Memory, cache_memory, training_memory
from gpt.insight.plan.parameters import by_part
from gpt.insight.plan.text import planned
from gpt.insight.plan.timing import measured
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.origin import find_origin
from gpt.training.settings import TrainSettings


class PlanSettings(TrainSettings):
    """What a training will cost: parameters, operations, memory, tokens, and the time on this machine.

    Takes what train.py takes. Memory is computed, nothing of it is taken; for the time a few updates are made, where
    they fit. No run is begun. Tokens of a small text are made and kept under data/, as train.py does; those of a large
    one are used where they have been prepared.

    Examples:
        python -m gpt plan
        python -m gpt plan model=gpt2 model.vocab_size=50257 batch_size=16 accumulate=4
        python -m gpt plan experiment=shakespeare_char budget=5min
        python -m gpt plan -m model.n_layer=2,4,8 optimizer=adamw,muon
    """


def plan(settings: TrainSettings, run_dir: Path | None) -> dict[str, str]:
    """Print what a training of these settings takes; some of it for a sweep's table.

    Raises:
        UserError: what train.py would refuse.
    """
    device = choose_device(settings.device)
    prepare_device(device)
    origin = find_origin(settings, run_dir)
    precision = origin.precision(settings.precision, device)
    settings.check_model(precision)
    text = planned(settings, origin.tokenizer)
    model = laid_out(settings, text.vocabulary)
    free = free_bytes(device)
    accumulate, memory = divided(settings, text.vocabulary, precision, free)
    cached, batches = cache_memory(settings, text.vocabulary, precision), text.batches(settings)
    page.show_model(model, by_part(model), cached)
    page.show_memory(memory, settings, accumulate, free)
    if free is not None and memory.resident > free:
        page.show_too_much(memory, free, accumulate < settings.batch_size)
        return page.columns(model, memory, None)
    with page.measuring():
        timing = measured(settings, text, precision, accumulate, origin.compile(settings.compile, precision))
    horizon = origin.start(settings.horizon(), Processes(device))
    lasts = length(horizon, settings.eval_every, timing)
    page.show_training(model, text, batches, lasts)
    page.show_time(timing, lasts, settings, precision)
    return page.columns(model, memory, lasts)


def laid_out(settings: TrainSettings, vocabulary: int) -> GPT:
    """The model, without memory."""
    with torch.device("meta"):
        return settings.build_model(vocabulary)


def divided(settings: TrainSettings, vocabulary: int, precision: Precision, free: int | None) -> tuple[int, Memory]:
    """In how many micro-steps an update is made, for `auto` as few as fit into what is free; and what it takes."""
    if settings.accumulate != "auto":
        return settings.accumulate, training_memory(settings, vocabulary, precision, settings.accumulate)
    parts = [n for n in range(1, settings.batch_size + 1) if settings.batch_size % n == 0]
    tried: dict[int, Memory] = {}

    def fits(number: int) -> bool:
        tried[number] = training_memory(settings, vocabulary, precision, number)
        return free is None or tried[number].resident <= free

    # Halving what is left: to count what a large model takes lasts seconds each time.
    last = len(parts) - 1
    number = 1 if fits(1) else parts[bisect_left(parts, True, lo=min(1, last), hi=last, key=fits)]
    if number not in tried:
        fits(number)
    return number, tried[number]
