"""Small models of every shape that a public architecture has, with no weight left as it begins."""

import pytest
import torch

from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

SIZES = {"vocab_size": 257, "context": 32, "n_layer": 3, "n_head": 4, "d_model": 32}
GPT2 = {"norm": "layernorm", "qk_norm": False, "position": {"name": "learned"}, "feedforward": {"name": "gelu"}}
SCALED = {"name": "rope", "base": 500.0, "factor": 2.0}
NARROW = {"name": "swiglu", "hidden": 40}
WINDOWED = {"name": "sliding_window", "window": 5, "sinks": 0, "layers": "SSL"}
SHAPES = {
    "gpt2": {**GPT2, "bias": True},
    "gpt2, untied, exact": {**GPT2, "bias": True, "tied": False, "feedforward": {"name": "gelu", "form": "exact"}},
    "llama, multi-head": {"qk_norm": False, "tied": False, "norm_eps": 1e-5},
    "llama, grouped, scaled": {"qk_norm": False, "n_kv_head": 2, "position": SCALED},
    "llama, multi-query, biased": {"qk_norm": False, "n_kv_head": 1, "bias": True, "feedforward": NARROW},
    "qwen3": {"n_kv_head": 1},
    "qwen3, wide heads, untied": {"n_kv_head": 2, "head_dim": 12, "tied": False},
    "qwen3, windows": {"n_kv_head": 2, "attention": WINDOWED},
}  # fmt: skip


@pytest.fixture
def random_model():
    """A model of a shape; gains and biases are drawn too, since ones and zeros would hide a mistake."""

    def build(shape="qwen3", **settings):
        torch.manual_seed(0)
        model = GPT(GPTConfig(**{**SIZES, **SHAPES[shape], **settings})).eval()
        for name, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.2)
        return model

    return build


@pytest.fixture(params=SHAPES)
def shape(request):
    return request.param
