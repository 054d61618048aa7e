"""Sparse attention: a local window, sinks, and every stride-th token (Child et al. 2019, arXiv:1904.10509).

The columns, tokens stride - 1, 2·stride - 1, ... of a document, are seen by all later ones. Where the stride is no
longer than the window, each token is seen by the next column, so what a window cannot reach is two steps away. Time is
O(length · (window + length / stride)), the cache O(window + length / stride). With window = stride, as in the paper,
both are least at the square root of the length; for a given window, the longer the stride the cheaper.
"""

from math import isqrt
from typing import Literal

from pydantic import Field

from gpt.model.attention import Attention, AttentionConfig
from gpt.model.attention._pattern import PatternAttention
from gpt.model.config import GPTConfig, Size
from gpt.model.pattern import Pattern


class SparseConfig(AttentionConfig):
    """The last tokens, the first ones, and every stride-th."""

    name: Literal["sparse"] = "sparse"
    window: Size | None = None
    """Tokens that are seen, the query's own among them; null: a quarter of the context."""
    sinks: int = Field(default=4, ge=0, le=1 << 20)
    """First tokens of a document that all of it sees."""
    stride: Size | None = None
    """Tokens from one column to the next; null: the square root of the context."""

    def build(self, model: GPTConfig, layer: int) -> Attention:
        """The module."""
        window, stride = self.window or max(1, model.context // 4), self.stride or isqrt(model.context)
        return PatternAttention(model, Pattern(window, self.sinks, stride))
