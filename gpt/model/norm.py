"""Normalisation, by its name in the configuration.

LayerNorm (Ba et al. 2016):  y = (x - mean(x)) / sqrt(var(x) + eps) · gain + bias
RMSNorm (Zhang & Sennrich 2019):  y = x / sqrt(mean(x²) + eps) · gain
"""

from torch import Tensor, nn

from gpt.model.config import GPTConfig


class RMSNorm(nn.RMSNorm):
    """PyTorch's, in the gain's dtype: under autocast the input may be of another, for which it has no fused kernel."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) -> the same, in the input's dtype."""
        return super().forward(x.to(self.weight.dtype)).to(x.dtype)


def build_norm(config: GPTConfig, size: int) -> nn.Module:
    """The configured norm over a last dimension of `size`."""
    if config.norm == "layernorm":
        return nn.LayerNorm(size, eps=config.norm_eps, bias=config.bias)
    return RMSNorm(size, eps=config.norm_eps)
