"""Settings of a bench that takes a second, of three shapes that the peer has too."""

import pytest

from gpt.insight.bench.settings import BenchSettings
from gpt.model.config import GPTConfig
from gpt.training.optimizer.adamw import AdamwConfig

SIZES = {"vocab_size": 11, "context": 8, "n_layer": 1, "n_head": 2, "d_model": 16}
PARTS = {
    "gpt2": {
        "norm": "layernorm", "qk_norm": False, "bias": True, "position": {"name": "learned"},
        "feedforward": {"name": "gelu"},
    },
    "llama": {"qk_norm": False, "tied": False, "n_kv_head": 1},
    "qwen3": {"n_kv_head": 1, "head_dim": 12},
}  # fmt: skip


@pytest.fixture(params=PARTS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def shape():
    def build(kind: str = "qwen3", **settings) -> GPTConfig:
        return GPTConfig(**{**SIZES, **PARTS[kind], **settings})

    return build


@pytest.fixture
def bench_settings(shape):
    def build(kind: str = "qwen3", **settings) -> BenchSettings:
        quick = {"batch_size": 2, "repeats": 2, "seconds": 0.01, "redos": 0, "optimizer": AdamwConfig()}
        return BenchSettings(**{"model": shape(kind), **quick, **settings})

    return build
