"""The peer: a `transformers` model of the same shape, with random weights.

    position  norm       feedforward  qk_norm   class
    learned   layernorm  gelu         no        GPT2LMHeadModel
    rope      rmsnorm    swiglu       no        LlamaForCausalLM
    rope      rmsnorm    swiglu       yes       Qwen3ForCausalLM

The package is imported only when a peer is built.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import nn

from gpt.model.block import Block
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.model.position.rope import Rope

MAJOR = 5
"""Of the versions of transformers, the one whose names of settings are used here."""

EXACT = ("reference", "sdpa")
"""Attention variants in which each token sees all before it, as in the peer."""


class NoPeerError(Exception):
    """Nothing can be measured beside, told in one sentence."""


@dataclass(frozen=True)
class Peer:
    """A class of transformers and the settings that give it our shape."""

    kind: str
    """As transformers' configurations name it."""
    settings: Mapping[str, Any]
    differs: tuple[str, ...]
    """What it cannot have as ours has it, each in a few words."""

    def build(self) -> Any:
        """The model, in training mode, with SDPA attention, as fp32 on the default device.

        Raises:
            NoPeerError: the package is not installed, or another version.
        """
        require_package()
        import transformers

        transformers.logging.set_verbosity_error()
        config = transformers.AutoConfig.for_model(self.kind, **self.settings)
        return transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation="sdpa", dtype=torch.float32
        ).train()


def require_package() -> None:
    """Raise NoPeerError where transformers is not here, with the way to install it."""
    try:
        found = version("transformers")
    except PackageNotFoundError:
        raise NoPeerError("transformers is not installed; to measure beside it: pip install -e '.[dev]'") from None
    if int(found.partition(".")[0]) != MAJOR:
        raise NoPeerError(f"transformers {found} is installed, {MAJOR}.x is needed: pip install -e '.[dev]'")


def peer_of(model: GPT) -> Peer:
    """The peer of our model's shape.

    Raises:
        NoPeerError: no class of transformers has this shape.
    """
    c = model.config
    if c.attention.name not in EXACT:
        raise NoPeerError(f"transformers has no class with model/attention={c.attention.name}")
    shape = (c.position.name, c.norm, c.feedforward.name, c.qk_norm)
    if shape not in KINDS:
        raise NoPeerError(
            f"transformers has no class with position {c.position.name}, {c.norm}, feedforward {c.feedforward.name} "
            f"and qk_norm {str(c.qk_norm).lower()}"
        )
    return KINDS[shape](model)


def gpt2(model: GPT) -> Peer:
    """GPT-2, whose heads are as many for keys as for queries and as wide together as the model."""
    c = model.config
    if c.kv_heads != c.n_head or c.n_head * c.head_size != c.d_model:
        raise NoPeerError("transformers' GPT-2 has neither n_kv_head nor head_dim")
    settings = {
        **common(c),
        "n_embd": c.d_model,
        "n_layer": c.n_layer,
        "n_head": c.n_head,
        "n_positions": c.context,
        "n_inner": hidden_width(model),
        "layer_norm_epsilon": c.norm_eps,
        "resid_pdrop": c.dropout,
        "embd_pdrop": c.dropout,
        "attn_pdrop": c.dropout,
    }
    return Peer("gpt2", settings, () if c.bias else ("it has biases",))


def llama(model: GPT) -> Peer:
    """Llama."""
    bias = model.config.bias
    return Peer("llama", {**rotary(model), "attention_bias": bias, "mlp_bias": bias}, undropped(model.config))


def qwen3(model: GPT) -> Peer:
    """Qwen 3, whose feedforward never has biases."""
    c = model.config
    biased = ("its feedforward has no biases",) if c.bias else ()
    return Peer("qwen3", {**rotary(model), "attention_bias": c.bias}, (*undropped(c), *biased))


KINDS: Mapping[tuple[str, str, str, bool], Callable[[GPT], Peer]] = {
    # position, norm, feedforward, qk_norm
    ("learned", "layernorm", "gelu", False): gpt2,
    ("rope", "rmsnorm", "swiglu", False): llama,
    ("rope", "rmsnorm", "swiglu", True): qwen3,
}


def common(config: GPTConfig) -> dict[str, Any]:
    """What all classes name alike; no token ends a text, so that all decode the same number."""
    return {
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": config.tied,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def rotary(model: GPT) -> dict[str, Any]:
    """What Llama and Qwen 3 name alike."""
    c = model.config
    if c.d_model % c.n_head:
        raise NoPeerError(f"transformers' classes need a d_model, here {c.d_model}, that n_head {c.n_head} divides")
    assert isinstance(model.position, Rope), f"{type(model.position).__name__} is not rotary"
    return {
        **common(c),
        "hidden_size": c.d_model,
        "intermediate_size": hidden_width(model),
        "num_hidden_layers": c.n_layer,
        "num_attention_heads": c.n_head,
        "num_key_value_heads": c.kv_heads,
        "head_dim": c.head_size,
        "max_position_embeddings": c.context,
        "rms_norm_eps": c.norm_eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": model.position.base},
        "attention_dropout": c.dropout,
    }


def undropped(config: GPTConfig) -> tuple[str, ...]:
    """What is to be said of dropout in Llama and Qwen 3."""
    return ("it drops attention weights only",) if config.dropout else ()


def hidden_width(model: GPT) -> int:
    """Width inside the feedforward, resolved."""
    block = model.blocks[0]
    assert isinstance(block, Block), f"{type(block).__name__} is no block"
    output = block.feedforward.output
    assert isinstance(output, nn.Linear), f"{type(output).__name__} is no matrix"
    return output.in_features
