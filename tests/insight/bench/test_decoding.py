import pytest

from gpt.insight.bench.decoding import OurDecoding, random_prompts
from gpt.model.gpt import GPT


def test_prompts_are_of_one_length_and_in_the_vocabulary(bench_settings):
    prompts = random_prompts(bench_settings(), rows=3)
    assert [len(prompt) for prompt in prompts] == [4, 4, 4]
    assert all(0 <= token < 11 for prompt in prompts for token in prompt)
    assert prompts == random_prompts(bench_settings(), rows=3)


@pytest.mark.parametrize("rows", [1, 3])
def test_it_writes_as_many_tokens_as_are_asked_for(kind, rows, bench_settings):
    """4 after a prompt of 4, which is all that the context of 8 takes."""
    settings = bench_settings(kind)
    assert OurDecoding(GPT(settings.shape), random_prompts(settings, rows), settings.new_tokens)() == rows * 4


def test_in_bf16_too(bench_settings):
    settings = bench_settings()
    model = GPT(settings.shape).bfloat16()
    assert OurDecoding(model, random_prompts(settings, 2), 3)() == 6
