import pytest
import torch

from gpt.config import variant_class, variant_names
from gpt.model.config import GPTConfig
from gpt.model.feedforward.gelu import Gelu
from gpt.model.feedforward.relu2 import Relu2
from gpt.model.feedforward.swiglu import Swiglu, SwigluConfig


def filled(module, **weights):
    for name, value in weights.items():
        getattr(module, name).weight.data = torch.tensor(value)
    return module


@pytest.mark.parametrize("x, y", [(2.0, 12.0), (-2.0, 0.0)])
def test_relu2_by_hand(x, y):
    module = filled(Relu2(1, 1, bias=False), input=[[1.0]], output=[[3.0]])
    assert module(torch.tensor([x])).item() == y


def test_gelu_by_hand():
    module = filled(Gelu(1, 1, bias=False), input=[[1.0]], output=[[1.0]])
    # x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))) at 1
    assert module(torch.tensor([1.0])).item() == pytest.approx(0.841192, abs=1e-6)


def test_swiglu_by_hand():
    module = filled(Swiglu(1, 1, bias=False), input=[[1.0], [5.0]], output=[[2.0]])
    # silu(1) = 1 / (1 + e^-1) = 0.731059; times up 5, times 2
    assert module(torch.tensor([1.0])).item() == pytest.approx(7.31059, abs=1e-4)


def test_swiglu_is_about_eight_thirds_wide_in_steps_of_64():
    assert SwigluConfig().build(GPTConfig(d_model=192, n_head=3)).output.in_features == 512
    assert SwigluConfig().build(GPTConfig(d_model=384, n_head=6)).output.in_features == 1024
    assert SwigluConfig().build(GPTConfig(d_model=100, n_head=1)).output.in_features == 320
    assert SwigluConfig(hidden=7).build(GPTConfig()).output.in_features == 7


@pytest.mark.parametrize("name", variant_names("gpt.model.feedforward"))
@pytest.mark.parametrize("bias", [True, False])
def test_every_variant_takes_its_width_and_biases_from_the_settings(name, bias):
    cls, model = variant_class("gpt.model.feedforward", name), GPTConfig(n_head=1, d_model=8, bias=bias)
    module = cls(name=name, hidden=7).build(model)
    assert module.output.weight.shape == (8, 7)
    assert [n for n, _ in module.named_parameters() if n.endswith("bias")] == ["input.bias", "output.bias"] * bias


@pytest.mark.parametrize("name", ["gelu", "relu2"])
def test_two_layers_are_four_times_as_wide(name):
    module = variant_class("gpt.model.feedforward", name)(name=name).build(GPTConfig(n_head=1, d_model=8))
    assert module.input.weight.shape == (32, 8)
