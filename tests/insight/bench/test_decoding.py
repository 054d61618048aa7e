import pytest
import torch

from gpt.insight.bench.decoding import OurDecoding, PeerDecoding, random_prompts
from gpt.insight.bench.peer import peer_of
from gpt.model.gpt import GPT


def test_prompts_are_of_one_length_and_in_the_vocabulary(bench_settings):
    prompts = random_prompts(bench_settings(), rows=3)
    assert [len(prompt) for prompt in prompts] == [4, 4, 4]
    assert all(0 <= token < 11 for prompt in prompts for token in prompt)
    assert prompts == random_prompts(bench_settings(), rows=3)


@pytest.mark.parametrize("rows", [1, 3])
def test_both_write_the_same_number_of_tokens(kind, rows, bench_settings):
    """Those that are new: 4 after a prompt of 4, which is all that the context of 8 takes."""
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    settings = bench_settings(kind)
    model = GPT(settings.shape)
    prompts = random_prompts(settings, rows)
    assert OurDecoding(model, prompts, settings.new_tokens)() == rows * 4
    assert PeerDecoding(peer_of(model).build().eval(), prompts, settings.new_tokens)() == rows * 4


def test_in_bf16_too(bench_settings):
    settings = bench_settings()
    model = GPT(settings.shape).bfloat16()
    assert OurDecoding(model, random_prompts(settings, 2), 3)() == 6
