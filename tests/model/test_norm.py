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
