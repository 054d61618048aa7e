"""Study `scaling`: numbers by hand, and what is measured against theory."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.insight.study import scaling as module
from gpt.insight.study.scaling import ScalingConfig, sharpness, standard_error

SMALL = ScalingConfig(d_k=[4, 64, 1024], keys=16, trials=200)


def test_sharpness_by_hand():
    """Of (1/2, 1/2) the Jacobian is [[1/4, -1/4], [-1/4, 1/4]]; of a quarter each 2 bits and √(4·(3/16)² + 12/16²)."""
    entropy, gradient = sharpness(torch.tensor([[0.25] * 4, [0.5, 0.5, 0, 0], [0, 0, 1, 0]]))
    assert entropy.tolist() == [2, 1, 0]
    assert gradient.tolist() == pytest.approx([math.sqrt(48 / 256), 0.5, 0])


@settings(deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=2, max_size=8))
def test_sharpness_is_that_of_the_softmax(scores):
    """The Jacobian is autograd's, and the entropy is between 0 and log2(n)."""
    s = torch.tensor(scores, dtype=torch.float64)
    entropy, gradient = sharpness(s.softmax(dim=0)[None])
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(dim=0), s)
    assert gradient.item() == pytest.approx(jacobian.norm().item(), abs=1e-12)
    assert -1e-12 <= entropy.item() <= math.log2(len(scores)) + 1e-12


def test_the_standard_error_is_how_much_the_standard_deviation_varies():
    """200 experiments of 50 trials: the standard deviation of 200 numbers is known to 5 %, 15 % is allowed."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(200, 50, n, 8, generator=generator) for n in (1, 4))
    stds = (q @ k.mT).flatten(1).std(dim=1)
    assert float(stds.std()) == pytest.approx(standard_error(8, 4, 50), rel=0.15)


def test_the_standard_deviation_is_the_root_of_d_k(context):
    table = SMALL.build().run(context).tables["scores"]
    assert [row[0] for row in table.rows] == [4, 64, 1024]
    for d_k, std, theory, error, scaled, one, scaled_error in table.rows:
        assert (theory, one) == (math.sqrt(d_k), 1)
        assert 0 < abs(std - theory) < 3 * error
        assert scaled == pytest.approx(std / theory)
        assert scaled_error == pytest.approx(error / theory)
        assert error < 0.1 * theory


def test_the_softmax_saturates_only_without_scaling(context):
    table = SMALL.build().run(context).tables["softmax"]
    assert table.columns[1:3] == ["bits of q·k", "bits of q·k / √d_k"]
    assert table.columns[3:5] == ["median of q·k", "median of q·k / √d_k"]
    _, bits, scaled_bits, median, scaled_median, mean, scaled_mean = (list(c) for c in zip(*table.rows, strict=True))
    assert all(0 <= b <= 4 for b in bits + scaled_bits)
    assert bits[0] > bits[1] > bits[2]
    assert bits[2] < 0.3
    assert median[2] < 0.02 < 0.2 < min(scaled_median)
    assert mean[2] < min(scaled_mean) / 2
    # of many keys it would be 4 - 0.72; that of 16 is more, since the largest of few scores is smaller
    assert all(4 - 0.72 < b < 4 - 0.5 for b in scaled_bits[1:])


def test_the_same_seed_gives_the_same_numbers_in_parts_of_any_size(context, monkeypatch):
    """Each trial of its own and all at once differ in what is drawn when, but not in what is found."""
    whole = SMALL.build().run(context).tables
    assert SMALL.build().run(context).tables == whole
    monkeypatch.setattr(module, "AT_ONCE", 1)
    rows = ScalingConfig(d_k=[64], keys=16, trials=200).build().run(context).tables["scores"].rows
    assert abs(rows[0][1] - 8) < 3 * rows[0][3]


def test_one_figure_of_three_plots_and_what_one_sees(context, told):
    findings = SMALL.build().run(context)
    (name, figure), *none = findings.figures.items()
    assert (name, none) == ("scaling", [])
    spread, entropy, gradient = figure.axes
    assert [spread.get_yscale(), entropy.get_yscale(), gradient.get_yscale()] == ["log", "linear", "log"]
    assert [list(line.get_ydata()) for line in spread.lines[:2]] == [[2, 8, 32], [1, 1, 1]]
    assert list(entropy.lines[0].get_ydata()) == [4, 4]
    assert len(findings.sentences) == 3
    assert told.done == told.total > 0
