"""Normalisation, by its name in the configuration.

LayerNorm (Ba et al. 2016):  y = (x - mean(x)) / sqrt(var(x) + eps) · gain + bias
RMSNorm (Zhang & Sennrich 2019):  y = x / sqrt(mean(x²) + eps) · gain
"""

import torch
from torch import Tensor, nn

from gpt.model.config import GPTConfig


class RMSNorm(nn.RMSNorm):
    """PyTorch's, in the gain's dtype: under autocast the input may be of another, for which it has no fused kernel."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) -> the same, in the input's dtype; without a gain, computed in fp32."""
        dtype = torch.float32 if self.weight is None else self.weight.dtype
        return super().forward(x.to(dtype)).to(x.dtype)


def build_norm(config: GPTConfig, size: int) -> nn.Module:
    """The configured norm over a last dimension of `size`."""
    if config.norm == "layernorm":
        return nn.LayerNorm(size, eps=config.norm_eps, elementwise_affine=config.norm_gain, bias=config.bias)
    return RMSNorm(size, eps=config.norm_eps, elementwise_affine=config.norm_gain)
