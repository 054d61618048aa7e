"""Cached decoding side by side: greedy, the same prompts, the same number of new tokens, weights in the precision.

ours   gpt.generation.generate, each step's tokens read back, as sample.py does
peers  by their own code, which their files in `peer` tell of
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from gpt.device import CompileMode
from gpt.generation.decoder import Decoder
from gpt.generation.decoder.choice import Decoding
from gpt.generation.decoder.prepared import Quantize
from gpt.generation.generate import generate
from gpt.generation.settings import GenerationSettings
from gpt.insight.bench.settings import BenchSettings
from gpt.model.gpt import GPT


def random_prompts(settings: BenchSettings, rows: int) -> list[list[int]]:
    """Token ids, `rows` prompts of one length."""
    vocabulary = settings.shape.vocab_size
    assert vocabulary is not None
    draw = torch.Generator().manual_seed(settings.seed)
    prompts: list[list[int]] = torch.randint(vocabulary, (rows, settings.prompt_tokens), generator=draw).tolist()
    return prompts


@dataclass
class OurDecoding:
    """Texts of our model, side by side."""

    model: GPT
    prompts: Sequence[Sequence[int]]
    new_tokens: int
    quantize: Quantize | None = None
    compile: CompileMode = "off"

    @cached_property
    def decoder(self) -> Decoder:
        """As sample.py would take it."""
        decoding = Decoding(self.model, self.compile, self.quantize)
        return decoding.decoder(len(self.prompts), padded=False, steps=self.new_tokens)

    def __call__(self) -> int:
        """Write them once; how many tokens they are."""
        settings = GenerationSettings(max_new_tokens=self.new_tokens, temperature=0)
        steps = generate(self.model, self.prompts, settings, self.model.embedding.num_embeddings, self.decoder)
        return sum(len(tokens.tolist()) for tokens in steps)
