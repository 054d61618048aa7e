"""Sliding-window attention (Beltagy et al. 2020, arXiv:2004.05150; Jiang et al. 2023, arXiv:2310.06825).

A token sees itself and the window - 1 tokens before it, and the first tokens of its document, the sinks (Xiao et al.
2024, arXiv:2309.17453). Time is O(length · window), the cache O(window + sinks). Through n_layer layers a token is
reached from n_layer · (window - 1) tokens before.
"""

from typing import Literal

from pydantic import Field, field_validator

from gpt.model.attention import Attention, AttentionConfig
from gpt.model.attention._pattern import PatternAttention
from gpt.model.attention.sdpa import Sdpa
from gpt.model.config import GPTConfig, Size
from gpt.model.pattern import Pattern


class SlidingWindowConfig(AttentionConfig):
    """The last tokens and the first ones: time and memory for a token do not grow with the text."""

    name: Literal["sliding_window"] = "sliding_window"
    window: Size | None = None
    """Tokens that are seen, the query's own among them; null: a quarter of the context."""
    sinks: int = Field(default=4, ge=0, le=1 << 20)
    """First tokens of a document that all of it sees."""
    layers: str = "S"
    """S a window, L all tokens; tiled over the layers, as SSSL. Where there is an L, the last layer is one."""

    @field_validator("layers")
    @classmethod
    def _are_letters(cls, layers: str) -> str:
        if not layers or set(layers) - {"S", "L"}:
            raise ValueError(f"expected the letters S, a window, and L, all tokens, as SSSL; got {layers!r}")
        return layers

    def build(self, model: GPTConfig, layer: int) -> Attention:
        """A window, or for an L plain attention."""
        last = layer == model.n_layer - 1 and "L" in self.layers
        if last or self.layers[layer % len(self.layers)] == "L":
            return Sdpa(model)
        return SlidingWindow(model, Pattern(self.window or max(1, model.context // 4), self.sinks))


class SlidingWindow(PatternAttention):
    """A window and sinks."""

    endless = True

    def __init__(self, model: GPTConfig, pattern: Pattern) -> None:
        super().__init__(model, pattern)
        self.forgets = pattern.window <= model.context
