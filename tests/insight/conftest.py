"""Shared by the tests of studies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from gpt.insight.study import Context


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
