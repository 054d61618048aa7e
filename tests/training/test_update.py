import pytest
import torch

from gpt.config import UserError
from gpt.data.batches import IGNORE, Batches
from gpt.training.horizon import Horizon


def gradient(update, micro_batches):
    loss = update.gradients(micro_batches, update.forward)
    return loss, {name: p.grad.clone() for name, p in update.model.named_parameters()}


def halves(batch):
    return [tuple(t.chunk(4)[i] for t in batch) for i in range(4)]


def test_any_split_of_a_batch_gives_one_gradient(build_update, tokens):
    batch = Batches(tokens, 8, 8, seed=0).batch(0)
    loss, whole = gradient(build_update(), [batch])
    split_loss, split = gradient(build_update(), halves(batch))
    assert torch.allclose(loss, split_loss)
    for name in whole:
        assert torch.allclose(whole[name], split[name], atol=1e-7), name


def test_also_where_targets_are_masked_unevenly(build_update, tokens):
    inputs, targets = Batches(tokens, 8, 8, seed=0).batch(0)
    targets[:2] = IGNORE  # the first of the four parts has no target at all
    targets[2, :5] = IGNORE
    loss, whole = gradient(build_update(), [(inputs, targets)])
    split_loss, split = gradient(build_update(), halves((inputs, targets)))
    assert torch.allclose(loss, split_loss)
    for name in whole:
        assert torch.allclose(whole[name], split[name], atol=1e-7), name


def test_the_loss_is_the_mean_over_targets(build_update, tokens):
    update = build_update()
    inputs, targets = Batches(tokens, 8, 4, seed=0).batch(0)
    targets[0, 0] = IGNORE
    expected = update.model(inputs, targets).sum() / 31
    assert torch.allclose(update.gradients([(inputs, targets)], update.forward), expected)


def test_measuring_changes_nothing(build_update, tokens):
    one, other = build_update(dropout=0.3), build_update(dropout=0.3)
    batches = Batches(tokens, 8, 4, seed=0)
    cost = one.compile("off", [batches.batch(0)], Horizon(10))
    assert cost.seconds > 0
    assert cost.compiled == "off"
    for step in range(3):
        for update in (one, other):
            torch.manual_seed(step)
            update([batches.batch(step)])
    assert torch.equal(one.model.embedding.weight, other.model.embedding.weight)


def test_compiling_that_fails_is_a_warning_and_strict_an_error(build_update, tokens, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no C++ compiler\nand a long story")

    update = build_update()
    monkeypatch.setattr(torch, "compile", lambda model: broken)
    batch = [Batches(tokens, 8, 4, seed=0).batch(0)]
    with pytest.warns(UserWarning, match=r"going on without \(RuntimeError: no C\+\+ compiler\)"):
        cost = update.compile("on", batch, Horizon(10))
    assert cost.compiled == "off (it failed)"
    assert update.forward is update.model
    with pytest.raises(UserError, match="compile: strict"):
        update.compile("strict", batch, Horizon(10))


def test_a_compiled_loss_that_differs_is_given_up(build_update, tokens, monkeypatch):
    update = build_update()
    monkeypatch.setattr(torch, "compile", lambda model: lambda *args: model(*args) * 1.1)
    with pytest.warns(UserWarning, match="its first loss is"):
        update.compile("on", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10))
    assert update.forward is update.model


def test_auto_compiles_only_what_repays_it(build_update, tokens):
    update = build_update()
    cost = update.compile("auto", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10))
    assert cost.compiled.startswith("off (auto")
