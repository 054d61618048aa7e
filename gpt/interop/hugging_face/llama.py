"""Llama (Touvron et al. 2023): rotary positions, RMSNorm, SwiGLU, grouped-query attention."""

from collections.abc import Mapping
from typing import Any, ClassVar

from gpt.config import shown
from gpt.interop.hugging_face.architecture import EXACT, Architecture, Kind, Size, refused
from gpt.interop.naming import Row, by_heads, in_halves
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.model.position.rope import Rope


class Llama(Architecture):
    """LlamaForCausalLM."""

    kind: ClassVar[Kind] = "llama"
    class_name = "LlamaForCausalLM"
    base = "model"
    parts: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "attention.name": EXACT,
        "position.name": ("rope",),
        "norm": ("rmsnorm",),
        "feedforward.name": ("swiglu",),
        "qk_norm": (False,),
        "scale_embedding": (False,),
        "logit_softcap": (None,),
    }
    always: ClassVar[Mapping[str, Any]] = {"norm_gain": True}
    sizes: ClassVar[Mapping[str, Size]] = {
        "vocab_size":              Size("vocab_size", 32000),
        "max_position_embeddings": Size("context", 2048),
        "hidden_size":             Size("d_model", 4096),
        "intermediate_size":       Size("feedforward.hidden", 11008),
        "num_hidden_layers":       Size("n_layer", 32),
        "num_attention_heads":     Size("n_head", 32),
        "num_key_value_heads":     Size("n_kv_head", None),
        "head_dim":                Size("head_dim", None),
        "rms_norm_eps":            Size("norm_eps", 1e-6),
        "initializer_range":       Size("init_std", 0.02),
        "tie_word_embeddings":     Size("tied", False),
    }  # fmt: skip
    fixed: ClassVar[Mapping[str, Any]] = {"hidden_act": "silu"}
    rows: ClassVar[tuple[Row, ...]] = (
        Row("embedding",                   ("model.embed_tokens",)),
        Row("blocks.*.attention_norm",     ("model.layers.*.input_layernorm",)),
        Row("blocks.*.attention.qkv",      tuple(f"model.layers.*.self_attn.{x}_proj" for x in "qkv"), by_heads),
        Row("blocks.*.attention.output",   ("model.layers.*.self_attn.o_proj",)),
        Row("blocks.*.feedforward_norm",   ("model.layers.*.post_attention_layernorm",)),
        Row("blocks.*.feedforward.input",  ("model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj"), in_halves),
        Row("blocks.*.feedforward.output", ("model.layers.*.mlp.down_proj",)),
        Row("norm",                        ("model.norm",)),
        Row("head",                        ("lm_head",)),
    )  # fmt: skip

    def limits(self, config: GPTConfig) -> list[str]:
        """The class wants a width that its heads divide, be they as wide or not."""
        return ["d_model"] * bool(config.d_model % config.n_head)

    def written(self, model: GPT) -> dict[str, Any]:
        """Biases and rotary angles."""
        bias = model.config.bias
        return {"attention_bias": bias, "mlp_bias": bias, **attention_settings(model)}

    def read(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """The same; dropout is left to who trains it on, since theirs is of attention weights alone."""
        attention, mlp = theirs.get("attention_bias", False), theirs.get("mlp_bias", False)
        if attention != mlp:
            raise refused("attention_bias", attention, f"mlp_bias is {shown(mlp)}, and both alike")
        return {"bias": attention, **rotary(theirs)}


def attention_settings(model: GPT) -> dict[str, Any]:
    """Dropout, and the angles, as all versions of transformers read them."""
    assert isinstance(model.position, Rope), f"{type(model.position).__name__} is not rotary"
    factor = model.position.factor
    return {
        "attention_dropout": model.config.dropout,
        "rope_theta": model.position.base,
        "rope_scaling": None if factor == 1 else {"rope_type": "linear", "factor": factor},
    }


def rotary(theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Our position's settings, of theirs in the old way (`rope_theta`, `rope_scaling`) or the new (`rope_parameters`).

    Raises:
        UserError: angles that ours cannot be.
    """
    found = theirs.get("rope_scaling") or theirs.get("rope_parameters") or {}
    if not isinstance(found, dict):
        raise refused("rope_parameters", found, "a mapping")
    angles = {**theirs, **found}
    kind = found.get("rope_type", found.get("type", "default"))
    if kind not in ("default", "linear") or any(isinstance(value, dict) for value in found.values()):
        raise refused("rope_type", found if "rope_type" not in found else kind, "default and linear")
    if angles.get("partial_rotary_factor", 1.0) != 1.0:
        raise refused("partial_rotary_factor", angles["partial_rotary_factor"], "1.0")
    base = angles.get("rope_theta")
    factor = found.get("factor") if kind == "linear" else 1.0
    return {"position.base": 10000.0 if base is None else base, "position.factor": factor}
