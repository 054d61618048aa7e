"""Two layers with a squared ReLU between (Primer, So et al. 2021):  y = W_out · max(W_in · x, 0)²."""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from gpt.model.config import GPTConfig
from gpt.model.feedforward import FeedforwardConfig


class Relu2Config(FeedforwardConfig):
    """Two layers with a squared ReLU between; 4 d_model wide."""

    name: Literal["relu2"] = "relu2"

    def build(self, model: GPTConfig) -> nn.Module:
        """The module."""
        return Relu2(model.d_model, self.hidden or 4 * model.d_model, model.bias)


class Relu2(nn.Module):
    """W_out · relu(W_in · x)²."""

    def __init__(self, d_model: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.input = nn.Linear(d_model, hidden, bias)
        self.output = nn.Linear(hidden, d_model, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> the same."""
        return self.output(F.relu(self.input(x)).square())
