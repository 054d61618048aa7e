"""The step compiled: one graph for every length of a text.

How many tokens are seen is a number that the graph takes, as the size of an argument, so nothing is compiled anew while
a text grows, and no key is read that is not seen. Only the number of rows, and whether they are padded, make a graph of
their own. What PyTorch would check before each call is known here, and not checked: it would take as long as a layer.
"""

from collections.abc import Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from gpt.device import keep_compiled
from gpt.generation.decoder import Decoder
from gpt.model.cache import Cache
from gpt.model.cache.static import StaticMemory
from gpt.model.gpt import GPT
from gpt.model.mask import Where

OPTIONS: dict[str, Any] = {"guard_filter_fn": lambda guards: [False] * len(guards), "cpp_wrapper": True}
"""No check before a call, and the calls between kernels in C++."""


class Compiled(Decoder):
    """For models that keep every key and value.

    Args:
        model: what was prepared for it.
        told: what it is, in a few words.
        backend: of torch.compile; another one than its own takes no options.
    """

    def __init__(self, model: GPT, told: str = "compiled", backend: str = "inductor") -> None:
        super().__init__(model, told)
        self.backend = backend
        self._steps: dict[tuple[int, bool], Any] = {}

    def __call__(self, token: Tensor, where: Where | None, cache: Cache) -> Tensor:
        """See one more token, (rows, 1), after those in the cache: (rows, vocab_size) logits."""
        memories = [memory for memory in cache.memories if isinstance(memory, StaticMemory)]
        held = [memory.held for memory in memories]
        seen = token.new_empty(cache.length, dtype=torch.bool)
        key = (token.size(0), where is not None)
        if key not in self._steps:
            self._steps[key] = self._compile(seen, held)
        logits: Tensor = self._steps[key](token, where, seen, held)
        for memory in memories:
            memory.length += 1
        cache.advance(1, where)
        return logits

    def _compile(self, seen: Tensor, held: Sequence[Sequence[Tensor]]) -> Any:
        """The step as a graph in which the number of tokens seen, and of those there is room for, are open."""
        model = self.model
        keep_compiled()

        def step(token: Tensor, where: Where | None, seen: Tensor, held: Sequence[Sequence[Tensor]]) -> Tensor:
            cache = Cache([StaticMemory.over(tensors, seen.size(0)) for tensors in held])
            cache.length = seen.size(0)
            return model.logits(model.hidden(token, where, cache)[:, -1])

        torch._dynamo.mark_dynamic(seen, 0)
        for tensors in held:
            for tensor, dimension in zip(tensors, (2, 2, 1, 1), strict=False):
                torch._dynamo.mark_dynamic(tensor, dimension)
        # PyTorch finds what it compiled by a function's code, and without checks would find another model's.
        own = FunctionType(step.__code__.replace(), step.__globals__, closure=step.__closure__)
        # Weights that may not change are packed by oneDNN, for several rows; those of one are summed by rows.
        options = {**OPTIONS, "freezing": held[0][0].size(0) > 1 and not seen.is_cuda}
        if self.backend != "inductor":
            options = {"guard_filter_fn": OPTIONS["guard_filter_fn"]}
        return torch.compile(own, fullgraph=True, backend=self.backend, options=options)
