from functools import partial

import pytest
import torch

from gpt.device import choose_precision
from gpt.insight.bench.peer.transformers import build, loss
from gpt.insight.bench.training import OurTraining, PeerTraining, PeerUpdate, peer_optimizer, random_updates
from gpt.model.gpt import GPT
from gpt.training.optimizer.muon import MuonConfig

CPU = torch.device("cpu")
FP32 = choose_precision("fp32", CPU)


@pytest.fixture
def peer(shape):
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    return build(GPT(shape("qwen3"))).model


def test_an_update_has_the_rows_and_parts_that_are_set(bench_settings):
    updates = random_updates(bench_settings(batch_size=6, accumulate=2))
    assert [len(update) for update in updates] == [2] * 16
    inputs, targets = updates[0][1]
    assert inputs.shape == targets.shape == (3, 8)
    assert inputs[:, 1:].equal(targets[:, :-1])
    assert all(0 <= int(inputs.min()) <= int(inputs.max()) < 11 for update in updates for inputs, _ in update)


def test_both_see_the_same_tokens_and_count_them_alike(bench_settings, peer):
    settings = bench_settings(batch_size=4, accumulate=2)
    ours, theirs = OurTraining(GPT(settings.shape), settings), PeerTraining("transformers", peer, loss, settings)
    assert all(
        a.equal(b)
        for one, two in zip(ours.batches, theirs.batches, strict=True)
        for first, second in zip(one, two, strict=True)
        for a, b in zip(first, second, strict=True)
    )
    assert ours.eager(FP32).work() == theirs.eager(FP32).work() == 4 * 8


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_part_of_work_changes_all_weights(precision, bench_settings, peer):
    settings = bench_settings()
    model, chosen = GPT(settings.shape), choose_precision(precision, CPU)
    for trained, training in (
        (model, OurTraining(model, settings)),
        (peer, PeerTraining("transformers", peer, loss, settings)),
    ):
        before = [parameter.detach().clone() for parameter in trained.parameters()]
        contender = training.eager(chosen)
        assert (contender.entry.precision, contender.entry.compile_seconds) == (precision, None)
        contender.work()
        assert not any(old.equal(new) for old, new in zip(before, trained.parameters(), strict=True))
        assert all(parameter.grad is None for parameter in trained.parameters())


def test_the_peers_update_in_parts_is_that_of_the_whole_and_clipped(bench_settings, peer):
    """By plain SGD with a rate of 1 the weights move by the gradient: by no more than the norm it is clipped to."""
    (inputs, targets), *_ = random_updates(bench_settings(batch_size=4))[0]
    parts = list(zip(inputs.chunk(2), targets.chunk(2), strict=True))
    start = {name: parameter.detach().clone() for name, parameter in peer.named_parameters()}

    def moved(micro_batches, clip: float) -> torch.Tensor:
        peer.load_state_dict(start, strict=False)
        PeerUpdate(partial(loss, peer), torch.optim.SGD(peer.parameters(), lr=1.0), clip, FP32)(micro_batches)
        return torch.cat([(p.detach() - start[name]).flatten() for name, p in peer.named_parameters()])

    whole = moved([(inputs, targets)], clip=0.0)
    torch.testing.assert_close(moved(parts, clip=0.0), whole, rtol=1e-4, atol=1e-6)
    assert float(whole.norm()) > 0.02
    assert float(moved([(inputs, targets)], clip=0.01).norm()) == pytest.approx(0.01, rel=1e-2)


def test_the_peers_optimizer_is_fused_adamw_whatever_ours_is(bench_settings, peer):
    (group,) = peer_optimizer(peer, bench_settings()).param_groups
    assert (group["fused"], group["lr"], group["betas"], group["weight_decay"]) == (True, 2e-3, (0.9, 0.95), 0.1)
    assert isinstance(peer_optimizer(peer, bench_settings(optimizer=MuonConfig())), torch.optim.AdamW)
