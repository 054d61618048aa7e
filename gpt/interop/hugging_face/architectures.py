"""The architectures that there are, and the one that holds a model.

position  norm       feedforward  qk_norm   class
learned   layernorm  gelu         no        GPT2LMHeadModel
rope      rmsnorm    swiglu       no        LlamaForCausalLM
rope      rmsnorm    swiglu       yes       Qwen3ForCausalLM
"""

from collections.abc import Mapping

from gpt.config import UserError
from gpt.interop.hugging_face.architecture import Architecture, Kind
from gpt.interop.hugging_face.gpt2 import Gpt2
from gpt.interop.hugging_face.llama import Llama
from gpt.interop.hugging_face.qwen3 import Qwen3
from gpt.model.gpt import GPT

ARCHITECTURES: Mapping[Kind, Architecture] = {a.kind: a for a in (Gpt2(), Llama(), Qwen3())}


def holding(model: GPT) -> Architecture:
    """The architecture that holds exactly this model.

    Raises:
        UserError: there is none; what is in the way of the nearest one is named.
    """
    nearest = min(ARCHITECTURES.values(), key=lambda architecture: len(architecture.obstacles(model)))
    if obstacles := nearest.obstacles(model):
        raise UserError(
            f"export: no class of transformers holds this model: {', '.join(obstacles)} cannot be in "
            f"{nearest.class_name}, the nearest one; there are {', '.join(map(in_words, ARCHITECTURES.values()))}"
        )
    return nearest


def in_words(architecture: Architecture) -> str:
    """An architecture by its class and its parts."""
    parts = [architecture.parts[path][0] for path in ("position.name", "norm", "feedforward.name")]
    normed = ["qk_norm"] * architecture.parts["qk_norm"][0]
    return f"{architecture.class_name} ({', '.join([*parts, *normed])})"
