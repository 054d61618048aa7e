"""Shared by the tests of studies."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from gpt.__main__ import main
from gpt.cli import compose
from gpt.insight.study import Context
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.settings import TrainSettings

BYTES = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)


class Told:
    """A progress reporter that remembers what it was told."""

    def __init__(self) -> None:
        self.total = self.done = 0.0

    @contextmanager
    def __call__(self, total: float) -> Iterator[Callable[[float], None]]:
        self.total += total
        yield self.advance

    def advance(self, part: float) -> None:
        self.done += part


@pytest.fixture
def told() -> Told:
    """What a study's progress reporter was told: `total`, `done`."""
    return Told()


@pytest.fixture
def context(told: Told) -> Context:
    """To run a study in."""
    return Context(torch.device("cpu"), seed=1337, progress=told)


SMALL = ("model.n_layer=1", "model.context=16", "model.d_model=8", "model.n_head=2", "tokenizer=byte", "logger=[]")


@pytest.fixture
def trained(tmp_path, make_run, state_of):
    """Writes the folder of a run with such metrics, a row of training and one of validation every 10 steps."""

    def build(name, *argv, losses=(5.0, 4.5, 4.0), speeds=(), done=30):
        settings, _ = compose("train", [*SMALL, "steps=30", *argv], TrainSettings)
        run = make_run(tmp_path / name, settings=settings.model_dump(), steps=())
        for step, loss in enumerate(losses, 1):
            counts = {"step": 10 * step, "tokens": 1000 * step, "elapsed": 10.0 * step}
            speed = speeds[step - 1] if speeds else 200.0
            run.log({**counts, "loss": loss + 0.5, "lr": 0.1, "grad_norm": 1.5, "tokens_per_second": speed})
            run.log({**counts, "validation_loss": loss, "validation_bits_per_byte": loss - 1.0})
        if done:
            last = losses[-1] if math.isfinite(losses[-1]) else None
            run.save(GPT(BYTES).state_dict(), {}, {**state_of(done, last), "elapsed": float(done)})
        return run.folder

    return build


@pytest.fixture
def verb(monkeypatch, capfd):
    """Types `python -m gpt VERB …`; the exit code, and what is printed on both outputs."""

    def run(*argv):
        monkeypatch.setattr(sys, "argv", ["gpt", *map(str, argv)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        return code, *capfd.readouterr()

    return run
