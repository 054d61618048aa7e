"""A pre-norm residual block:  x ← x + attention(norm(x));  x ← x + feedforward(norm(x))."""

from torch import Tensor, nn

from gpt.model.attention import Attention, Place
from gpt.model.cache import Memory
from gpt.model.config import GPTConfig
from gpt.model.dropout import Dropout
from gpt.model.norm import build_norm


class Block(nn.Module):
    """Attention between tokens, then a feedforward on each."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.attention_norm = build_norm(config, config.d_model)
        self.attention: Attention = config.attention.build(config, layer)
        self.feedforward_norm = build_norm(config, config.d_model)
        self.feedforward: nn.Module = config.feedforward.build(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, place: Place, memory: Memory | None = None) -> Tensor:
        """(batch, length, d_model) -> the same."""
        x = x + self.dropout(self.attention(self.attention_norm(x), place, memory))
        return x + self.dropout(self.feedforward(self.feedforward_norm(x)))
