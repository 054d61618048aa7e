"""Two layers with GELU between (Hendrycks & Gimpel 2016).

y = W_out · gelu(W_in · x)
exact:  gelu(x) = x · Φ(x) = x/2 · (1 + erf(x / sqrt(2)))
tanh:   gelu(x) = x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))), GPT-2's, which is off by 0.0005 at most
"""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from gpt.model.config import GPTConfig
from gpt.model.feedforward import FeedforwardConfig


class GeluConfig(FeedforwardConfig):
    """Two layers with GELU between; 4 d_model wide."""

    name: Literal["gelu"] = "gelu"
    form: Literal["tanh", "exact"] = "tanh"
    """tanh, as GPT-2 computes it, or exact, as nanoGPT does: what weights were trained with."""

    def build(self, model: GPTConfig) -> nn.Module:
        """The module."""
        return Gelu(model.d_model, self.hidden or 4 * model.d_model, model.bias, self.form)


class Gelu(nn.Module):
    """W_out · gelu(W_in · x)."""

    def __init__(self, d_model: int, hidden: int, bias: bool, form: Literal["tanh", "exact"] = "tanh") -> None:
        super().__init__()
        self.approximate = "none" if form == "exact" else form
        self.input = nn.Linear(d_model, hidden, bias)
        self.output = nn.Linear(hidden, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> the same."""
        return self.output(F.gelu(self.input(x), approximate=self.approximate))
