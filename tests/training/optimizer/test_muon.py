"""Muon against PyTorch's own, and against what orthogonal means."""

import pytest
import torch
from torch import nn, optim

from gpt.device import has_native_bf16
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.guard import Guard
from gpt.training.optimizer.muon import Muon, MuonConfig, orthogonalize

SIZES = {"vocab_size": 17, "context": 8, "n_layer": 3, "n_head": 2, "d_model": 16, "tied": False}


def model():
    torch.manual_seed(0)
    return GPT(GPTConfig(**SIZES))


BATCHES = torch.randint(17, (4, 4, 9), generator=torch.Generator().manual_seed(1))


def train(built, optimizers, steps=range(3)):
    """A few updates on the same batches, at a learning rate that changes."""
    for step in steps:
        built(BATCHES[step, :, :-1], BATCHES[step, :, 1:]).sum().div(32).backward()
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group.setdefault("peak", group["lr"]) * (1 - 0.2 * step)
            optimizer.step()
            optimizer.zero_grad()
    return {name: parameter.detach().clone() for name, parameter in built.named_parameters()}


@pytest.mark.parametrize("weight_decay", [0.0, 0.5])
def test_matrices_are_updated_as_pytorchs_muon_does_it_and_all_others_as_adamw(weight_decay):
    ours = train(built := model(), [MuonConfig(lr=0.02, adamw_lr=6e-3, weight_decay=weight_decay).build(built)])
    built = model()
    matrices = [p for name, p in built.named_parameters() if name.startswith("blocks.") and p.ndim == 2]
    others = [p for name, p in built.named_parameters() if not (name.startswith("blocks.") and p.ndim == 2)]
    muon = optim.Muon(matrices, lr=0.02, weight_decay=weight_decay, momentum=0.95, nesterov=True)
    adamw = optim.AdamW(others, lr=6e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0, fused=True)
    theirs = train(built, [muon, adamw])
    for name, parameter in built.named_parameters():
        if parameter.ndim == 2 and name.startswith("blocks."):  # theirs computes in bf16 everywhere
            difference = (ours[name] - theirs[name]).norm() / (
                theirs[name] - dict(model().named_parameters())[name]
            ).norm()
            assert difference < 0.02, name
        else:
            assert torch.allclose(ours[name], theirs[name], atol=2e-4), name  # their gradients have seen the matrices


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 4, 32), (2, 32, 4), (1, 1, 5)])
def test_orthogonalized_matrices_have_singular_values_near_to_one(shape):
    torch.manual_seed(0)
    matrices = torch.randn(shape) * torch.tensor([1e-3, 1.0, 1e3])[: shape[0], None, None]
    found = orthogonalize(matrices).float()
    assert found.shape == shape
    for matrix, result in zip(matrices, found, strict=True):
        assert torch.linalg.svdvals(result).sub(1).abs().max() < 0.5
        left, _, right = torch.linalg.svd(matrix, full_matrices=False)
        assert nn.functional.cosine_similarity(result.flatten(), (left @ right).flatten(), dim=0) > 0.95


def test_one_matrix_does_not_change_another_of_its_shape():
    torch.manual_seed(0)
    both = torch.randn(2, 6, 4)
    alone = torch.cat([orthogonalize(both[:1]), orthogonalize(both[1:])])
    assert torch.allclose(
        orthogonalize(both).float(), alone.float(), atol=2e-2 if has_native_bf16(both.device) else 1e-6
    )


def test_a_gradient_of_zeros_changes_nothing():
    built = model()
    optimizer = MuonConfig().build(built)
    before = [p.detach().clone() for p in built.parameters()]
    for p in built.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    assert all(torch.equal(p, old) for p, old in zip(built.parameters(), before, strict=True))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_update_that_is_not_finite_leaves_parameters_and_state_as_they_are(bad):
    built = model()
    optimizer = MuonConfig(weight_decay=0.1).build(built)
    guard = Guard(optimizer, 1.0, torch.amp.GradScaler("cpu", enabled=False))
    for step in range(2):
        loss = built(BATCHES[0, :, :-1], BATCHES[0, :, 1:]).sum()
        guard.backward(loss * (bad if step else 1.0))
        if step:
            weights = {name: p.detach().clone() for name, p in built.named_parameters()}
            state = [{k: v.clone() for k, v in optimizer.state[p].items()} for p in built.parameters()]
        guard.step(loss)
    assert guard.skipped == 1
    for (name, parameter), old in zip(built.named_parameters(), state, strict=True):
        assert torch.equal(parameter, weights[name]), name
        assert all(torch.equal(value, old[key]) for key, value in optimizer.state[parameter].items()), name


def test_a_state_that_was_saved_goes_on_bit_for_bit():
    whole = train(built := model(), [MuonConfig().build(built)], range(4))
    half = model()
    train(half, [optimizer := MuonConfig().build(half)], range(2))
    again = model()
    again.load_state_dict(half.state_dict())
    loaded = MuonConfig().build(again)
    loaded.load_state_dict(optimizer.state_dict())
    resumed = train(again, [loaded], range(2, 4))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_settings_reach_both_parts():
    optimizer = MuonConfig(lr=0.5, momentum=0.7, adamw_lr=0.25, beta1=0.6, beta2=0.8, eps=1e-3).build(model())
    assert isinstance(optimizer, Muon)
    matrices, *others = optimizer.param_groups
    assert (matrices["name"], matrices["lr"], matrices["initial_lr"], matrices["momentum"]) == (
        "matrices",
        0.5,
        0.5,
        0.7,
    )
    assert [(g["name"], g["lr"], g["initial_lr"], g["betas"], g["eps"], g["weight_decay"]) for g in others] == [
        ("embeddings", 0.25, 0.25, (0.6, 0.8), 1e-3, 0.0),
        ("vectors", 0.25, 0.25, (0.6, 0.8), 1e-3, 0.0),
    ]
