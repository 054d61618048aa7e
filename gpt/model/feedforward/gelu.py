"""Two layers with GELU between (Hendrycks & Gimpel 2016), in GPT-2's tanh form.

y = W_out · gelu(W_in · x),   gelu(x) = x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³)))
"""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from gpt.model.config import GPTConfig
from gpt.model.feedforward import FeedforwardConfig


class GeluConfig(FeedforwardConfig):
    """Two layers with GELU between; 4 d_model wide."""

    name: Literal["gelu"] = "gelu"

    def build(self, model: GPTConfig) -> nn.Module:
        """The module."""
        return Gelu(model.d_model, self.hidden or 4 * model.d_model, model.bias)


class Gelu(nn.Module):
    """W_out · gelu(W_in · x)."""

    def __init__(self, d_model: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.input = nn.Linear(d_model, hidden, bias)
        self.output = nn.Linear(hidden, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> the same."""
        return self.output(F.gelu(self.input(x), approximate="tanh"))
