import pytest
import torch

from gpt.model.config import GPTConfig
from gpt.model.norm import build_norm


def test_rmsnorm_by_hand():
    norm = build_norm(GPTConfig(norm="rmsnorm", norm_eps=1e-12), 2)
    assert torch.allclose(norm(torch.tensor([3.0, 4.0])), torch.tensor([3.0, 4.0]) / 12.5**0.5)
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


def test_layernorm_by_hand():
    norm = build_norm(GPTConfig(norm="layernorm", bias=True, norm_eps=1e-12), 2)
    assert torch.allclose(norm(torch.tensor([3.0, 5.0])), torch.tensor([-1.0, 1.0]))
    assert [name for name, _ in norm.named_parameters()] == ["weight", "bias"]


def test_layernorm_without_bias():
    norm = build_norm(GPTConfig(norm="layernorm", bias=False), 2)
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


def test_eps_is_added_to_the_variance():
    rms = build_norm(GPTConfig(norm="rmsnorm", norm_eps=12.5), 2)
    assert torch.allclose(rms(torch.tensor([3.0, 4.0])), torch.tensor([0.6, 0.8]))  # sqrt(12.5 + 12.5) = 5
    layer = build_norm(GPTConfig(norm="layernorm", norm_eps=3.0), 2)
    assert torch.allclose(layer(torch.tensor([3.0, 5.0])), torch.tensor([-0.5, 0.5]))  # sqrt(1 + 3) = 2


def test_rmsnorm_gives_the_dtype_that_it_was_given():
    norm = build_norm(GPTConfig(norm="rmsnorm"), 2)
    assert norm(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["rmsnorm", "layernorm"])
def test_without_gain_there_is_nothing_to_learn(name):
    norm = build_norm(GPTConfig(norm=name, norm_gain=False, norm_eps=1e-12), 2)
    assert not list(norm.parameters())
    wanted = {"rmsnorm": torch.tensor([3.0, 4.0]) / 12.5**0.5, "layernorm": torch.tensor([-1.0, 1.0])}
    assert torch.allclose(norm(torch.tensor([3.0, 4.0])), wanted[name])
    assert norm(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.bfloat16 or name == "layernorm"
