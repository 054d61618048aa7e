"""Its greedy texts are ours: so the file that it reads holds our weights, in the order that it knows."""

import tempfile

import pytest
import torch

from gpt.device import choose_precision
from gpt.generation.generate import generate
from gpt.generation.settings import GenerationSettings
from gpt.insight.bench.decoding import random_prompts
from gpt.insight.bench.peer.llama_cpp import build
from gpt.insight.bench.race import Entry
from gpt.model.gpt import GPT

pytest.importorskip("llama_cpp")
pytest.importorskip("gguf")


def ours(model: GPT, prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
    settings = GenerationSettings(max_new_tokens=new_tokens, temperature=0)
    steps = generate(model.eval(), prompts, settings, model.embedding.num_embeddings)
    return torch.stack(list(steps), dim=1).tolist()


@pytest.mark.parametrize("precision, numbers", [("fp32", "fp32"), ("bf16", "fp16")])
@pytest.mark.parametrize("rows", [1, 3])
def test_it_writes_what_ours_writes(kind, rows, precision, numbers, bench_settings, shape, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    torch.manual_seed(1)
    settings = bench_settings(model=shape(kind, context=32, n_layer=2, init_std=0.5, qk_norm=kind == "qwen3"))
    model, prompts = GPT(settings.shape), random_prompts(settings, rows)
    contender = build(model).decoding(choose_precision(precision, torch.device("cpu")), prompts, settings.new_tokens)
    assert contender.entry == Entry("llama_cpp", numbers)
    assert contender.work() == rows * settings.new_tokens
    assert list(tmp_path.iterdir()) == []
    if numbers == "fp32":
        assert contender.work.texts() == ours(model, prompts, settings.new_tokens)
