"""Normalisation, by its name in the configuration.

LayerNorm (Ba et al. 2016):  y = (x - mean(x)) / sqrt(var(x) + eps) · gain + bias
RMSNorm (Zhang & Sennrich 2019):  y = x / sqrt(mean(x²) + eps) · gain
"""

from torch import nn

from gpt.model.config import GPTConfig


def build_norm(config: GPTConfig, size: int) -> nn.Module:
    """The configured norm over a last dimension of `size`."""
    if config.norm == "layernorm":
        return nn.LayerNorm(size, eps=config.norm_eps, bias=config.bias)
    return nn.RMSNorm(size, eps=config.norm_eps)
