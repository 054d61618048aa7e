from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt.config import variant_class, variant_names
from gpt.training.schedule.cosine import CosineConfig
from gpt.training.schedule.linear import LinearConfig
from gpt.training.schedule.wsd import WsdConfig

PACKAGE = "gpt.training.schedule"
NAMES = variant_names(PACKAGE)


def build(name, **settings):
    cls = variant_class(PACKAGE, name)
    return cls(name=name, **{k: v for k, v in settings.items() if k in cls.model_fields}).build()


@pytest.mark.parametrize("name", NAMES)
def test_first_peak_and_last(name):
    steps, schedule = 100, build(name, warmup=0.1, floor=0.2)
    rates = [schedule((step + 1) / steps) for step in range(steps)]
    assert rates[0] == pytest.approx(0.1)  # the first of ten warmup steps
    assert rates[9] == pytest.approx(1.0)
    assert rates[-1] == pytest.approx(1.0 if name == "constant" else 0.2)


@given(st.sampled_from(NAMES), st.floats(0, 0.9), st.floats(0, 1), st.integers(1, 300))
def test_positive_never_above_the_peak_and_without_jumps(name, warmup, floor, steps):
    schedule = build(name, warmup=warmup, floor=floor)
    rates = [schedule((step + 1) / steps) for step in range(steps)]
    assert all(0 <= rate <= 1 + 1e-9 for rate in rates)
    assert rates[0] > 0 or steps == 1
    steepest = 1 / (0.3 * (1 - warmup)) if name == "wsd" else 2 / (1 - warmup)
    rise = 1 / warmup if warmup else 0
    after = [r for step, r in enumerate(rates) if (step + 1) / steps >= warmup]
    assert all(a - b <= max(steepest, rise) / steps + 1e-9 for a, b in pairwise(after))


def test_shapes_by_hand():
    assert LinearConfig(warmup=0.0, floor=0.5).build()(0.5) == 0.75
    assert CosineConfig(warmup=0.0, floor=0.5).build()(0.5) == pytest.approx(0.75)
    assert CosineConfig(warmup=0.5, floor=0.0).build()(0.75) == pytest.approx(0.5)
    wsd = WsdConfig(warmup=0.0, floor=0.0, decay=0.5).build()
    assert [wsd(p) for p in (0.25, 0.5, 0.75, 1.0)] == [1.0, 1.0, 0.5, 0.0]
    assert WsdConfig(warmup=0.0, floor=0.5, decay=0.5).build()(0.75) == 0.75
