"""Which well-known model has our model's shape, and how it differs: what all peers ask.

position  norm       feedforward  qk_norm   kind
learned   layernorm  gelu         no        gpt2
rope      rmsnorm    swiglu       no        llama
rope      rmsnorm    swiglu       yes       qwen3
"""

from collections.abc import Mapping
from typing import Literal

from torch import nn

from gpt.insight.bench.peer import NoPeerError
from gpt.model.block import Block
from gpt.model.gpt import GPT

Kind = Literal["gpt2", "llama", "qwen3"]

KINDS: Mapping[tuple[str, str, str, bool], Kind] = {
    ("learned", "layernorm", "gelu", False): "gpt2",
    ("rope", "rmsnorm", "swiglu", False): "llama",
    ("rope", "rmsnorm", "swiglu", True): "qwen3",
}

EXACT = ("reference", "sdpa")
"""Attention variants in which each token sees all before it, as in the peers."""


def kind_of(model: GPT, library: str) -> Kind:
    """The model that ours is shaped like.

    Raises:
        NoPeerError: there is none; told of the library.
    """
    c = model.config
    if c.attention.name not in EXACT:
        raise NoPeerError(f"{library} has no model with model/attention={c.attention.name}")
    if not c.norm_gain or c.logit_softcap is not None:
        raise NoPeerError(f"{library} has no model with norm_gain=false or a logit_softcap")
    shape = (c.position.name, c.norm, c.feedforward.name, c.qk_norm)
    if shape not in KINDS:
        raise NoPeerError(
            f"{library} has no model with position {c.position.name}, {c.norm}, feedforward {c.feedforward.name} "
            f"and qk_norm {str(c.qk_norm).lower()}"
        )
    kind = KINDS[shape]
    if kind == "gpt2" and (c.kv_heads != c.n_head or c.n_head * c.head_size != c.d_model):
        raise NoPeerError(f"GPT-2, as {library} has it, has neither n_kv_head nor head_dim")
    if kind != "gpt2" and c.d_model % c.n_head:
        raise NoPeerError(f"{library}'s models need a d_model, here {c.d_model}, that n_head {c.n_head} divides")
    return kind


def surplus(parameters: int, model: GPT) -> str:
    """How many parameters a peer has, beside ours."""
    more = parameters - model.count_parameters()
    size = f"{parameters:,} parameters"
    return f"{size}, {abs(more):,} {'more' if more > 0 else 'fewer'}" if more else size


def hidden_width(model: GPT) -> int:
    """Width inside the feedforward, resolved."""
    block = model.blocks[0]
    assert isinstance(block, Block), f"{type(block).__name__} is no block"
    output = block.feedforward.output
    assert isinstance(output, nn.Linear), f"{type(output).__name__} is no matrix"
    return output.in_features
