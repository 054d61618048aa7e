import pytest
import torch

from gpt.device import choose_precision
from gpt.insight.bench.decoding import random_prompts
from gpt.insight.bench.peer import NoPeerError
from gpt.insight.bench.peer.litgpt import build
from gpt.insight.bench.race import Entry
from gpt.model.gpt import GPT

CPU = torch.device("cpu")


def test_it_has_no_learned_positions(shape):
    with pytest.raises(NoPeerError, match="^litgpt has no model with learned positions$"):
        build(GPT(shape("gpt2")))


@pytest.fixture(params=["llama", "qwen3"])
def rotary(request) -> str:
    pytest.importorskip("litgpt")
    return request.param


@pytest.mark.parametrize("tied", [True, False])
def test_the_peer_has_as_many_parameters(rotary, tied, shape):
    ours = GPT(shape(rotary, tied=tied))
    assert build(ours).description.endswith(f", GPT, {ours.count_parameters():,} parameters")


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_writes_as_many_tokens_as_are_asked_for(rotary, rows, precision, bench_settings):
    settings = bench_settings(rotary)
    contender = build(GPT(settings.shape)).decoding(choose_precision(precision, CPU), random_prompts(settings, rows), 4)
    assert contender.entry == Entry("litgpt", precision)
    assert contender.work() == contender.work() == rows * 4


def test_it_learns(bench_settings):
    pytest.importorskip("litgpt")
    settings = bench_settings()
    peer = build(GPT(settings.shape))
    before = peer.model.lm_head.weight.detach().clone()
    assert peer.training(settings).eager(choose_precision("fp32", CPU)).work() == 2 * 8
    assert not peer.model.lm_head.weight.equal(before)
