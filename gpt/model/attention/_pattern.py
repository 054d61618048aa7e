"""Softmax attention over a sparse pattern: what sliding-window and sparse attention share."""

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.model.attention import Place, _flex
from gpt.model.attention._blocks import Layout, block_size, lay_out
from gpt.model.attention._segments import SIZE, Segments
from gpt.model.attention.sdpa import Sdpa
from gpt.model.cache import Memory
from gpt.model.cache.rolling import RollingMemory
from gpt.model.config import GPTConfig
from gpt.model.mask import Predicate, Where
from gpt.model.pattern import Pattern


class PatternAttention(Sdpa):
    """PyTorch's fused kernels on what a pattern shows: O(length · window), forward and backward.

    By FlexAttention (Dong et al. 2024, arXiv:2412.05496) where it can, elsewhere in blocks.
    """

    def __init__(self, model: GPTConfig, pattern: Pattern) -> None:
        super().__init__(model)
        self.context = model.context
        self.pattern = pattern
        self.visible = shared(pattern)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Place, memory: Memory | None) -> Tensor:
        """Append to the memory, then mix over what it gives."""
        where = place.where
        if memory is not None:
            assert isinstance(memory, RollingMemory), f"{type(memory).__name__} does not forget"
            key, value, where = memory.append(key, value, place.where)
        if place.back is None or not self.pattern.sinks:
            return self.mix_after(query, key, value, place, where, memory)
        query, key = self.with_sinks_near(query, key, place, where)
        value = F.pad(value, (0, value.size(3)))  # the fused kernels take one width
        return self.mix_after(query, key, value, place, where, memory)[..., : self.head_dim]

    def with_sinks_near(self, query: Tensor, key: Tensor, place: Place, where: Where | None) -> tuple[Tensor, Tensor]:
        """Queries and keys of twice the width, whose product takes no sink to be farther away than in the context.

        From beyond the context a sink is seen as from the context's last position: training showed none farther away
        (Xiao et al. 2024 likewise count positions in the cache). A query stands beside itself as turned back to there;
        the keys of sinks are to be multiplied with the second half, all others with the first.
        """
        assert place.back is not None
        sink = ((where or place.located).position < self.pattern.sinks)[:, None, :, None]
        both = torch.cat((query, place.back(query)), dim=3) * math.sqrt(2)  # scores are divided by sqrt(2 · head_dim)
        return both, torch.cat((key * ~sink, key * sink), dim=3)

    def weights(self, query: Tensor, key: Tensor, place: Place, key_where: Where | None = None) -> Tensor:
        """As of any softmax."""
        if place.back is not None and self.pattern.sinks:
            query, key = self.with_sinks_near(query, key, place, key_where or place.where)
        return super().weights(query, key, place, key_where)

    def mix_after(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        place: Place,
        where: Where | None,
        memory: RollingMemory | None,
    ) -> Tensor:
        """The mixture over keys that `memory` gave, or over those of one text."""
        if memory is None:
            return self.mix(query, key, value, place, where)
        if place.where is None and query.size(2) == 1 and place.bias is None:
            return self.fused(query, key, value, None)  # it sees all that the memory gives
        if where is None or query.size(2) <= block_size(self.pattern.window):
            return self.mix(query, key, value, place, where)
        return self.in_blocks(query, key, value, place, where, memory)

    def mix(self, query: Tensor, key: Tensor, value: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """All keys of one text at once."""
        length = query.size(2)
        if key_where is None and length <= self.pattern.window and place.bias is None:
            return self.fused(query, key, value, None, causal=True)
        if length <= block_size(self.pattern.window):
            return self.fused(query, key, value, self.score_mask(query, key, place, key_where))
        if self.flexible(query.device, place.bias is not None, query.size(3)):
            if self.pattern.stride:
                return _flex.attend_columns(self.pattern, query, key, value, place)
            return _flex.attend(self.visible, query, key, value, place)
        if key_where is None and length > SIZE:
            return self.in_segments(query, key, value, place)
        return self.in_blocks(query, key, value, place, key_where, None)

    def in_segments(self, query: Tensor, key: Tensor, value: Tensor, place: Place) -> Tensor:
        """One document from its beginning, each segment in blocks."""
        segments = Segments.cut(self.pattern, query.size(2))

        def make() -> tuple[Tensor, list[Layout]]:
            where = torch.stack(place.located, dim=1)[..., None]  # (1, 2, length, 1)
            index = segments.kept_index(query.device)
            queries, keys = (
                [Where(*part.squeeze(3).unbind(1)) for part in parts]
                for parts in (segments.queries(where), segments.keys(where, index))
            )
            return index, [
                lay_out(self.pattern, *pair, segments.apart(i), segments.within(i), place.bias, query.dtype)
                for i, pair in enumerate(zip(queries, keys, strict=True))
            ]

        index, layouts = place.once(("segments", self.pattern, query.dtype), make)
        keys, values = segments.keys(key, index), segments.keys(value, index)
        parts = zip(segments.queries(query), keys, values, layouts, strict=True)
        return torch.cat([self.compute(*part) for part in parts], dim=2)

    def in_blocks(
        self, query: Tensor, key: Tensor, value: Tensor, place: Place, where: Where | None, memory: RollingMemory | None
    ) -> Tensor:
        """Block by block; `memory` is the one that gave the keys."""
        apart, seen = (memory.apart, memory.length) if memory else (0, query.size(2))
        kept = self.pattern.kept(max(0, seen - self.pattern.window))

        def make() -> Layout:
            located = place.located
            return lay_out(self.pattern, located, where or located, apart, kept, place.bias, query.dtype)

        layout = place.once(("blocks", self.pattern, apart, key.size(2), query.dtype), make)
        return self.compute(query, key, value, layout)

    def compute(self, query: Tensor, key: Tensor, value: Tensor, layout: Layout) -> Tensor:
        """The fused kernel, for all blocks at once."""
        mixed = self.fused(layout.queries(query), layout.keys(key), layout.keys(value), layout.mask)
        return layout.unfold(mixed, query.size(0), query.size(2))

    def compared(self, length: int) -> int:
        """The window and what is kept."""
        return min(length, self.pattern.window) + len(self.pattern.kept(max(0, length - self.pattern.window)))

    def build_memory(self, capacity: int) -> Memory:
        """What the pattern will look back at."""
        return RollingMemory(self.pattern, capacity)

    def describe(self, device: torch.device, dtype: torch.dtype, packed: bool = False) -> str:
        """One call where the context is so short, else FlexAttention, or blocks; and the kernel that computes them."""
        block = block_size(self.pattern.window)
        plain = self.context <= self.pattern.window and not packed and not self.biased
        if plain or self.context <= block:
            return self.kernel(device, dtype, masked=not plain)
        if self.flexible(device, self.biased, self.head_dim):
            return "FlexAttention"
        return f"blocks of {block} queries by {self.kernel(device, dtype, masked=True)}"


@cache
def shared(pattern: Pattern) -> Predicate:
    """Who is seen: one object for all layers of a pattern, by which they find one another's masks."""
    return pattern.visible
