"""The model presets: what they are, to the parameter, and how they begin."""

import math

import pytest
import torch

from gpt.cli import compose
from gpt.config import ROOT
from gpt.model.gpt import GPT
from gpt.training.settings import TrainSettings

PRESETS = sorted(file.stem for file in (ROOT / "configs/model").glob("*.yaml"))
GPT2_VOCABULARY = 50257


def config(preset, *overrides):
    settings, _ = compose("train", [f"model={preset}", *overrides], TrainSettings)
    return settings.model.for_vocabulary(GPT2_VOCABULARY)


@pytest.mark.parametrize(
    "preset, parameters",
    [("gpt2", 124_439_808), ("gpt2_medium", 354_823_168), ("gpt2_large", 774_030_080), ("gpt2_xl", 1_557_611_200)],
)
def test_gpt2_to_the_parameter(preset, parameters):
    with torch.device("meta"):
        model = GPT(config(preset))
    assert model.count_parameters() == parameters
    c = model.config
    assert (c.bias, c.tied, c.norm, c.norm_eps, c.position.name, c.feedforward.name, c.qk_norm) == (
        True, True, "layernorm", 1e-5, "learned", "gelu", False,
    )  # fmt: skip


def test_transformer_base():
    c = config("transformer_base")
    assert (c.d_model, c.n_head, c.head_size, c.n_layer, c.position.name, c.scale_embedding) == (
        512, 8, 64, 6, "sinusoidal", True,
    )  # fmt: skip


def test_baby():
    c = config("baby")
    assert (c.n_layer, c.n_head, c.d_model, c.context) == (6, 6, 384, 256)


def test_the_default_is_qwen3_shaped():
    c = config("default")
    assert (c.norm, c.qk_norm, c.bias, c.tied, c.position.name, c.feedforward.name) == (
        "rmsnorm", True, False, True, "rope", "swiglu",
    )  # fmt: skip
    assert c.n_head % c.kv_heads == 0
    with torch.device("meta"):
        block = dict(GPT(c).blocks[0].named_parameters())
    assert block["attention.query_norm.weight"].shape == (c.head_size,)
    assert block["attention.key_norm.weight"].shape == (c.head_size,)
    assert not any(name.endswith("bias") for name in block)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_initial_loss(preset):
    """Logits of a head with standard deviation σ over normed features have variance d_model · σ²."""
    torch.manual_seed(0)
    c = config(preset)
    model = GPT(c).eval()
    tokens, targets = torch.randint(GPT2_VOCABULARY, (2, 2, 32))
    with torch.no_grad():
        loss = model(tokens, targets).mean().item()
    assert loss == pytest.approx(math.log(GPT2_VOCABULARY) + c.d_model * c.init_std**2 / 2, abs=0.2)
