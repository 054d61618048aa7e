"""Hugging Face's transformers.

kind    class
gpt2    GPT2LMHeadModel
llama   LlamaForCausalLM
qwen3   Qwen3ForCausalLM

training   forward with labels by SDPA attention, backward, the same clipping, fused AdamW
decoding   its generate with its default, dynamic cache
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from gpt.device import DTYPES, Precision
from gpt.insight.bench.peer import Peer, require
from gpt.insight.bench.race import Contender, Entry
from gpt.insight.bench.settings import BenchSettings
from gpt.insight.bench.shape import kind_of, surplus
from gpt.insight.bench.training import PeerTraining, Training
from gpt.interop.hugging_face.architecture import Kind
from gpt.interop.hugging_face.architectures import ARCHITECTURES
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

NAME: Literal["transformers"] = "transformers"

MAJOR = 5
"""Of its versions, the one whose names of settings are used here."""


def build(model: GPT) -> Peer:
    """The peer of our model, in training mode, fp32, on its device.

    Raises:
        NoPeerError: no class has this shape; the package is not installed, or another version.
    """
    kind = kind_of(model, NAME)
    found = require(NAME, "dev", MAJOR)
    import transformers

    transformers.logging.set_verbosity_error()
    config = transformers.AutoConfig.for_model(kind, **ARCHITECTURES[kind].settings(model))
    made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.float32)
    size = surplus(sum(parameter.numel() for parameter in made.parameters()), model)
    told = "; ".join([f"{found}, {type(made).__name__}, {size}", *DIFFERS[kind](model.config)])
    return Transformers(made.train().to(model.embedding.weight.device), told)


class Transformers(Peer):
    """A model of transformers."""

    name = NAME

    def __init__(self, model: Any, description: str) -> None:
        self.model = model
        self.description = description
        self.copies: dict[str, Any] = {}
        """In evaluation mode, by precision of the weights."""

    def training(self, settings: BenchSettings) -> Training:
        """What trains it."""
        return PeerTraining(NAME, self.model, loss, settings)

    def decoding(self, precision: Precision, prompts: Sequence[Sequence[int]], new_tokens: int) -> Contender:
        """What writes with it."""
        name = precision.name
        if name not in self.copies:
            self.copies[name] = deepcopy(self.model).to(DTYPES[name]).eval()
        return Contender(Entry(NAME, name), Generating(self.copies[name], prompts, new_tokens))


def loss(forward: Any, inputs: Tensor, _: Tensor) -> Tensor:
    """The mean loss, its targets being the inputs, which it shifts itself: it counts one fewer in a row than ours."""
    scalar: Tensor = forward(input_ids=inputs, labels=inputs, use_cache=False).loss
    return scalar


@dataclass
class Generating:
    """Writes texts side by side."""

    model: Any
    prompts: Sequence[Sequence[int]]
    new_tokens: int

    def __call__(self) -> int:
        """Write them once; how many tokens they are."""
        prompts = torch.tensor(self.prompts, device=self.model.device)
        texts = self.model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            max_new_tokens=self.new_tokens,
            do_sample=False,
            use_cache=True,
            cache_implementation="static" if prompts.is_cuda else None,  # which it compiles; else the dynamic one
            pad_token_id=0,
        )
        return int(texts[:, prompts.size(1) :].numel())


def undropped(config: GPTConfig) -> list[str]:
    """What is to be said of dropout in Llama and Qwen 3."""
    return ["it drops attention weights only"] if config.dropout else []


DIFFERS: Mapping[Kind, Callable[[GPTConfig], list[str]]] = {
    "gpt2": lambda c: [] if c.bias else ["it has biases"],
    "llama": undropped,
    "qwen3": lambda c: [*undropped(c), *(["its feedforward has no biases"] if c.bias else [])],
}
"""What it cannot have as ours has it, each in a few words."""
