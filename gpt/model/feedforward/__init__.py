"""The network applied to each token by itself: the contract of a feedforward variant.

A variant maps (batch, length, d_model) to the same shape. Its last layer is named `output`: the initialisation scales
it down, since it writes into the residual stream.
"""

from torch import nn

from gpt.config import Variant
from gpt.model.config import GPTConfig, Size


class FeedforwardConfig(Variant):
    """A feedforward variant's configuration."""

    hidden: Size | None = None
    """Width inside; null is the variant's usual multiple of d_model."""

    def build(self, model: GPTConfig) -> nn.Module:
        """The module, its parameters uninitialised."""
        raise NotImplementedError
