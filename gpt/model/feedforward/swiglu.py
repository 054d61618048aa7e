"""A gated network (Shazeer 2020):  y = W_out · (silu(W_gate · x) · W_up · x),   silu(x) = x · sigmoid(x).

With three matrices instead of two, 8/3 of d_model (rounded up to a multiple of 64) keeps the usual parameter count.
"""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from gpt.model.config import GPTConfig
from gpt.model.feedforward import FeedforwardConfig


class SwigluConfig(FeedforwardConfig):
    """Gated with SiLU; about 8/3 d_model wide."""

    name: Literal["swiglu"] = "swiglu"

    def build(self, model: GPTConfig) -> nn.Module:
        """The module."""
        return Swiglu(model.d_model, self.hidden or -(-8 * model.d_model // (3 * 64)) * 64, model.bias)


class Swiglu(nn.Module):
    """W_out · (silu(gate) · up); gate and up are one matrix, their rows in that order."""

    def __init__(self, d_model: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.input = nn.Linear(d_model, 2 * hidden, bias)
        self.output = nn.Linear(hidden, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> the same."""
        gate, up = self.input(x).chunk(2, dim=-1)
        return self.output(F.silu(gate) * up)
