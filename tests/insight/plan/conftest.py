"""Shared by the tests of plans."""

import pytest

from gpt.cli import compose
from gpt.insight.plan.plan import PlanSettings

TINY = ["dataset.years=[1790,1800]", "tokenizer=byte", "model.n_layer=1", "model.n_head=1", "model.n_kv_head=1",
        "model.d_model=16", "model.context=32", "batch_size=2", "precision=fp32", "device=cpu"]  # fmt: skip


class Composing:
    """Settings of a plan, those of a tiny training but for what is given."""

    argv = TINY

    def __call__(self, *argv: str) -> PlanSettings:
        return compose("plan", [*self.argv, *argv], PlanSettings)[0]


@pytest.fixture
def settings() -> Composing:
    """Makes settings of a plan."""
    return Composing()
