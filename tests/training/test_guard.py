import math

import pytest
import torch
from torch import nn

from gpt.config import RunError
from gpt.training.guard import ENOUGH, PATIENCE, WINDOW, Guard, step_unless

NO_SCALER = torch.amp.GradScaler("cpu", enabled=False)


def parameter(value=(3.0, 4.0)):
    p = nn.Parameter(torch.tensor(value))
    p.grad = torch.tensor(value)
    return p


def guard_over(p, clip=0.0, **settings):
    return Guard(torch.optim.AdamW([p], lr=0.1, weight_decay=0.0, **settings), clip, NO_SCALER)


@pytest.mark.parametrize("fused", [True, False])
def test_a_good_update_is_made_and_the_norm_told(fused):
    p = parameter()
    norm = guard_over(p, fused=fused).step(torch.tensor(1.0))
    assert norm.item() == 5.0  # of (3, 4)
    assert torch.allclose(p.data, torch.tensor([2.9, 3.9]))  # Adam's first step has length lr in each coordinate
    assert p.grad is None


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("loss, gradient", [(math.nan, 1.0), (1.0, math.nan), (math.inf, 1.0), (1.0, math.inf)])
def test_a_bad_update_changes_nothing_and_is_counted(fused, loss, gradient):
    p = parameter()
    guard = guard_over(p, clip=1.0, fused=fused)
    guard.step(torch.tensor(1.0))
    before = p.detach().clone()
    state = {k: v.clone() for k, v in guard.optimizer.state[p].items()}
    p.grad = torch.tensor([1.0, gradient])
    guard.step(torch.tensor(loss))
    assert torch.equal(p.data, before)
    assert all(torch.equal(guard.optimizer.state[p][k], state[k]) for k in state if fused or k != "step")
    assert guard.check().skipped == 1
    p.grad = torch.ones(2)
    guard.step(torch.tensor(1.0))
    assert not torch.equal(p.data, before)
    assert p.isfinite().all()


@pytest.mark.parametrize("fused", [True, False])
def test_a_first_update_that_is_bad_leaves_no_trace(fused):
    p, untouched = parameter(), parameter()
    optimizer = torch.optim.AdamW([p], lr=0.1, fused=fused)
    p.grad = torch.full((2,), math.nan)
    step_unless(optimizer, torch.tensor(1.0))
    assert torch.equal(p.data, untouched.data)
    assert (optimizer.state[p]["exp_avg"] == 0).all()


def test_clipping():
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3.0, 4.0])
    guard = Guard(torch.optim.SGD([p], lr=1.0), 1.0, NO_SCALER)
    assert guard.step(torch.tensor(1.0)).item() == 5.0
    assert torch.allclose(p.data, torch.tensor([-0.6, -0.8]), atol=1e-5)


def test_many_in_a_row_end_the_run():
    p = parameter()
    guard = guard_over(p, fused=True)
    for _ in range(PATIENCE - 1):
        p.grad = torch.full((2,), math.nan)
        guard.step(torch.tensor(1.0))
    assert guard.check().skipped == PATIENCE - 1
    p.grad = torch.full((2,), math.nan)
    guard.step(torch.tensor(1.0))
    with pytest.raises(RunError, match=f"last {PATIENCE} updates"):
        guard.check()


def test_one_good_update_between_begins_the_count_anew():
    p = parameter()
    guard = guard_over(p, fused=True)
    for i in range(2 * PATIENCE):
        p.grad = torch.full((2,), 1.0 if i % 5 == 0 else math.nan)
        guard.step(torch.tensor(1.0))
    assert guard.check().skipped == 2 * PATIENCE * 4 // 5


def scaled_guard(p, clip=1.0):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
    return Guard(torch.optim.SGD([p], lr=1.0), clip, scaler), scaler


def test_a_scaled_loss_gives_the_update_of_the_plain_one():
    p = nn.Parameter(torch.zeros(2))
    guard, scaler = scaled_guard(p)
    loss = (p * torch.tensor([3.0, 4.0])).sum()
    guard.backward(loss)
    assert p.grad.tolist() == [3 * 1024, 4 * 1024]
    assert guard.step(loss.detach()).item() == 5.0, "unscaled before it is clipped"
    assert torch.allclose(p.data, torch.tensor([-0.6, -0.8]), atol=1e-5)
    assert scaler.get_scale() == 2048, "no overflow: a larger scale is tried"


def test_an_overflow_is_skipped_and_halves_the_scale():
    p = nn.Parameter(torch.zeros(2))
    guard, scaler = scaled_guard(p)
    p.grad = torch.tensor([1.0, math.inf])
    scaler.scale(torch.tensor(1.0))  # the scaler's tensors are made at its first use
    guard.step(torch.tensor(1.0))
    assert p.tolist() == [0, 0]
    assert guard.check().skipped == 1
    assert scaler.get_scale() == 512


def test_a_guard_goes_on_from_its_state():
    p = nn.Parameter(torch.zeros(2))
    guard, scaler = scaled_guard(p)
    for bad in (True, False, True, True):
        p.grad = torch.tensor([math.inf if bad else 1.0, 1.0])
        scaler.scale(torch.tensor(1.0))
        guard.step(torch.tensor(1.0))
    state = guard.state()
    assert (state["skipped"], state["skipped_in_a_row"]) == (3, 2)
    assert state["scaler"]["scale"] == 1024 / 2 * 2 / 2 / 2
    other, _ = scaled_guard(nn.Parameter(torch.zeros(2)))
    other.restore(**state)
    assert other.state() == state


def test_of_a_scaler_nothing_goes_over_to_another_precision():
    scaled, scaler = scaled_guard(nn.Parameter(torch.zeros(2)))
    plain = guard_over(parameter())
    scaled.restore(**plain.state())
    assert scaler.get_scale() == 1024, "left in bf16, and resumed in fp16"
    plain.restore(**scaled.state())
    assert plain.state() == {"skipped": 0, "skipped_in_a_row": 0, "spikes": 0, "losses": [], "scaler": {}}, (
        "and the other way round"
    )


def ordinary(guard, p, count):
    """So many updates of losses 2.0 and 2.2 by turns: their mean is 2.1, their standard deviation 0.1."""
    for i in range(count):
        p.grad = torch.ones(2)
        guard.step(torch.tensor(2.0 if i % 2 else 2.2))


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("loss, spikes", [(2.69, 0), (2.71, 1), (1.0, 0)])  # 6 deviations above the mean are 2.7
def test_a_loss_far_above_the_last_ones_is_a_spike(loss, spikes, skip):
    p = parameter()
    guard = guard_over(p, fused=True)
    guard.skip_spikes = skip
    ordinary(guard, p, ENOUGH)
    before = p.detach().clone()
    p.grad = torch.ones(2)
    guard.step(torch.tensor(loss))
    skipped = int(skip and spikes)
    assert guard.check() == (skipped, spikes)
    assert torch.equal(p.detach(), before) == bool(skipped)


def test_of_few_losses_none_is_a_spike_and_of_a_spike_that_was_made_the_next_ones_know():
    p = parameter()
    guard = guard_over(p, fused=True)
    ordinary(guard, p, ENOUGH - 1)
    p.grad = torch.ones(2)
    guard.step(torch.tensor(100.0))
    assert guard.check().spikes == 0, "one loss too few to compare with"
    assert guard.losses[-1] == 100
    assert guard.losses.isnan().sum() == WINDOW - ENOUGH


def test_a_loss_that_is_not_finite_is_no_spike_and_is_not_compared_with():
    p = parameter()
    guard = guard_over(p, fused=True)
    ordinary(guard, p, ENOUGH)
    p.grad = torch.ones(2)
    guard.step(torch.tensor(math.inf))
    assert guard.check() == (1, 0)
    assert guard.losses[-1] == 2.0


def test_spikes_without_end_end_the_run():
    p = parameter()
    guard = guard_over(p, fused=True)
    guard.skip_spikes = True
    ordinary(guard, p, ENOUGH)
    for _ in range(PATIENCE):
        p.grad = torch.ones(2)
        guard.step(torch.tensor(9.0))
    with pytest.raises(
        RunError, match=f"last {PATIENCE} updates had a loss or gradient that is not finite, or a spike"
    ):
        guard.check()


def test_the_window_goes_on_from_its_state():
    p = parameter()
    guard, again = guard_over(p, fused=True), guard_over(parameter(), fused=True)
    ordinary(guard, p, 5)
    assert guard.state()["losses"] == [pytest.approx(loss) for loss in (2.2, 2.0, 2.2, 2.0, 2.2)]
    again.restore(**guard.state())
    assert torch.equal(again.losses.nan_to_num(), guard.losses.nan_to_num())
    ordinary(guard, p, 2 * WINDOW)
    assert len(guard.state()["losses"]) == WINDOW
