import os
import time

import pytest
import torch

from gpt.config import RunError
from gpt.contention import Reading
from gpt.data.batches import IGNORE, Batches
from gpt.device import Precision
from gpt.training import update as updates
from gpt.training.horizon import Horizon


def gradient(update, micro_batches):
    loss = update.gradients(micro_batches, update.forward)
    return loss, {name: p.grad.clone() for name, p in update.model.named_parameters()}


def halves(batch):
    return [tuple(t.chunk(4)[i] for t in batch) for i in range(4)]


@pytest.mark.parametrize("separator", [None, 10])
def test_any_split_of_a_batch_gives_one_gradient(build_update, tokens, separator):
    batch = Batches(tokens, 8, 8, seed=0).batch(0)
    loss, whole = gradient(build_update(separator=separator), [batch])
    split_loss, split = gradient(build_update(separator=separator), halves(batch))
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
    loss = update.gradients([(inputs, targets)], update.forward)
    assert torch.allclose(loss, expected)
    assert not loss.requires_grad, "it holds no graph"


# Packed documents: 10 begins one, and ends the one before

PACKED = torch.tensor([[1, 2, 3, 10, 4, 5, 6, 7, 10]])
"""The end of a document, and one that stands there as a whole."""


def loss_of(update, row, first=0):
    """The mean loss of the targets from place `first` on, of a row of tokens."""
    inputs, targets = row[:, :-1], row[:, 1:].clone()
    targets[:, :first] = IGNORE
    return update.gradients([(inputs, targets)], update.forward)


@pytest.mark.parametrize("position", ["rope", "learned"])
def test_a_document_is_learned_from_as_if_it_stood_alone(build_update, position):
    """Its positions restart, and nothing before it is seen; learned positions are told apart by their rows."""
    update = build_update(separator=10, position={"name": position})
    alone, beside = loss_of(update, PACKED[:, 3:]), loss_of(update, PACKED, first=3)
    assert torch.allclose(beside, alone, rtol=1e-6)
    stream = build_update(position={"name": position})
    assert not torch.allclose(loss_of(stream, PACKED, first=3), alone, rtol=1e-6)
    assert torch.allclose(loss_of(stream, PACKED[:, 3:]), alone, rtol=1e-6), "alone it is the same"


def test_the_other_documents_of_a_row_change_neither_loss_nor_gradient(build_update):
    other = PACKED.clone()
    other[0, :3] = torch.tensor([9, 8, 0])
    (loss, one), (other_loss, two) = (
        gradient(update, [(row[:, :-1], torch.where(torch.arange(8) < 3, IGNORE, row[:, 1:]))])
        for update, row in ((build_update(separator=10), PACKED), (build_update(separator=10), other))
    )
    assert torch.equal(loss, other_loss)
    rest = {name: grad for name, grad in one.items() if name != "embedding.weight"}
    assert all(torch.allclose(grad, two[name], atol=1e-9) for name, grad in rest.items())
    assert not torch.equal(loss_of(build_update(), PACKED, first=3), loss_of(build_update(), other, first=3))


def test_where_documents_begin_is_found_on_the_device(build_update):
    """On a device that holds no numbers whatever is read back is an error."""
    update = build_update(separator=10)
    update.model.to("meta")
    update.precision = Precision("fp32", "as set", torch.device("meta"))
    assert loss_of(update, PACKED).is_meta


def test_measuring_changes_nothing(build_update, tokens):
    one, other = build_update(dropout=0.3), build_update(dropout=0.3)
    batches = Batches(tokens, 8, 4, seed=0)
    random_state = torch.get_rng_state()
    cost = one.compile("off", [batches.batch(0)], Horizon(10))
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(p.grad is None for p in one.model.parameters())
    assert cost.seconds > 0
    assert cost.disturbed is None, "in so little time nobody can tell"
    assert cost.compiled == "off"
    for step in range(3):
        for update in (one, other):
            torch.manual_seed(step)
            update([batches.batch(step)])
    assert torch.equal(one.model.embedding.weight, other.model.embedding.weight)


def test_what_is_measured_is_warm(build_update, tokens, monkeypatch):
    """By a clock on which the first update takes 100 s, since all is new to it, and the next ones 1 s."""
    update, now = build_update(), 0.0
    gradients, takes = update.gradients, iter([100.0, 1.0, 1.0, 1.0])

    def timed(micro_batches, forward):
        nonlocal now
        now += next(takes)
        return gradients(micro_batches, forward)

    update.gradients = timed
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    assert update.compile("off", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10)).seconds == 1.0


def test_who_else_computes_meanwhile_is_measured(build_update, tokens, monkeypatch):
    """Of 2 cores for 10 s, 4 s are another's; the rest is ours."""
    readings = iter([Reading(0, 0, 0), Reading(10, 16, 20)])
    monkeypatch.setattr(updates, "read", lambda: next(readings))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    cost = build_update().compile("off", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10))
    assert (cost.seconds, cost.disturbed) == (10, 0.2)


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
    with pytest.raises(RunError, match="compile: strict"):
        update.compile("strict", batch, Horizon(10))


def test_a_compiled_loss_that_differs_is_given_up(build_update, tokens, monkeypatch):
    update = build_update()
    monkeypatch.setattr(torch, "compile", lambda model: lambda *args: model(*args) * 1.1)
    with pytest.warns(UserWarning, match="its first loss is"):
        update.compile("on", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10))
    assert update.forward is update.model


def test_what_was_compiled_is_what_computes(build_update, tokens, monkeypatch):
    """Eager and compiled losses are compared as in training: with dropout, the same for both, and with a backward."""
    update = build_update(dropout=0.5)
    calls = []

    def compiled(*args):
        calls.append((update.model.training, torch.is_grad_enabled()))
        return update.model(*args)

    monkeypatch.setattr(torch, "compile", lambda model: compiled)
    batch = [Batches(tokens, 8, 4, seed=0).batch(0)]
    random_state = torch.get_rng_state()
    assert update.compile("strict", batch, Horizon(10)).compiled == "on"
    assert update.forward is compiled
    assert calls == [(True, True)]
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(p.grad is None for p in update.model.parameters())
    update(batch)
    assert calls == [(True, True)] * 2


def test_it_computes_in_the_precision(build_update, tokens):
    update = build_update()
    update.precision = Precision("bf16", "as set", torch.device("cpu"))
    dtypes = []
    update.model.blocks[0].feedforward.output.register_forward_hook(lambda _, __, out: dtypes.append(out.dtype))
    update([Batches(tokens, 8, 4, seed=0).batch(0)])
    assert dtypes == [torch.bfloat16]
    assert update.model.embedding.weight.dtype == torch.float32


def test_what_compiling_must_repay_is_the_whole_training(build_update, tokens, monkeypatch):
    told = []
    monkeypatch.setattr(
        updates, "compile_forward", lambda model, mode, seconds, probe, random: told.append(seconds) or (model, "")
    )
    cost = build_update().compile("auto", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10))
    assert told == [pytest.approx(10 * cost.seconds)]


def test_auto_compiles_only_what_repays_it(build_update, tokens):
    update = build_update()
    cost = update.compile("auto", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10))
    assert cost.compiled.startswith("off (auto")


def test_how_it_computes_is_kept(build_update, tokens, monkeypatch):
    update = build_update()
    monkeypatch.setattr(torch, "compile", lambda model: lambda *args: model(*args))
    counted = {"skipped": 0, "skipped_in_a_row": 0, "spikes": 0, "losses": [], "scaler": {}}
    assert update.state() == {**counted, "device": "cpu", "precision": "fp32", "compiled": False}
    update.precision = Precision("bf16", "as set", torch.device("cpu"))
    update.compile("on", [Batches(tokens, 8, 4, seed=0).batch(0)], Horizon(10))
    assert update.state() == {**counted, "device": "cpu", "precision": "bf16", "compiled": True}
