"""GPT-2 (Radford et al. 2019): learned positions, layer norms, GELU, biases everywhere.

Its matrices are (in, out).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from gpt.config import shown
from gpt.interop.hugging_face.architecture import EXACT, Architecture, Kind, Size, refused
from gpt.interop.naming import Row
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

FORMS = {"gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu": "exact"}
"""Their activation to the form of ours; the first of a form is what is written."""


class Gpt2(Architecture):
    """GPT2LMHeadModel."""

    kind: ClassVar[Kind] = "gpt2"
    class_name = "GPT2LMHeadModel"
    base = "transformer"
    parts: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "attention.name": EXACT,
        "position.name": ("learned",),
        "norm": ("layernorm",),
        "feedforward.name": ("gelu",),
        "qk_norm": (False,),
        "scale_embedding": (False,),
        "logit_softcap": (None,),
    }
    always: ClassVar[Mapping[str, Any]] = {"bias": True, "norm_gain": True}
    sizes: ClassVar[Mapping[str, Size]] = {
        "vocab_size":          Size("vocab_size", 50257),
        "n_positions":         Size("context", 1024),
        "n_embd":              Size("d_model", 768),
        "n_layer":             Size("n_layer", 12),
        "n_head":              Size("n_head", 12),
        "n_inner":             Size("feedforward.hidden", None),
        "layer_norm_epsilon":  Size("norm_eps", 1e-5),
        "initializer_range":   Size("init_std", 0.02),
        "tie_word_embeddings": Size("tied", True),
        "resid_pdrop":         Size("dropout", 0.1),
    }  # fmt: skip
    fixed: ClassVar[Mapping[str, Any]] = {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    }
    rows: ClassVar[tuple[Row, ...]] = (
        Row("embedding",                   ("transformer.wte",)),
        Row("position.table",              ("transformer.wpe",)),
        Row("blocks.*.attention_norm",     ("transformer.h.*.ln_1",)),
        Row("blocks.*.attention.qkv",      ("transformer.h.*.attn.c_attn",), transposed=True),
        Row("blocks.*.attention.output",   ("transformer.h.*.attn.c_proj",), transposed=True),
        Row("blocks.*.feedforward_norm",   ("transformer.h.*.ln_2",)),
        Row("blocks.*.feedforward.input",  ("transformer.h.*.mlp.c_fc",), transposed=True),
        Row("blocks.*.feedforward.output", ("transformer.h.*.mlp.c_proj",), transposed=True),
        Row("norm",                        ("transformer.ln_f",)),
        Row("head",                        ("lm_head",)),
    )  # fmt: skip

    def limits(self, config: GPTConfig) -> list[str]:
        """Neither fewer key heads nor heads of another width."""
        narrow = config.n_head * config.head_size != config.d_model
        return ["n_kv_head"] * (config.kv_heads != config.n_head) + ["head_dim"] * narrow

    def written(self, model: GPT) -> dict[str, Any]:
        """The activation, and dropout everywhere."""
        form, dropout = getattr(model.config.feedforward, "form", None), model.config.dropout
        activation = next((theirs for theirs, ours in FORMS.items() if ours == form), None)
        return {"activation_function": activation, "embd_pdrop": dropout, "attn_pdrop": dropout}

    def read(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """The form of GELU."""
        activation = theirs.get("activation_function", "gelu_new")
        if not isinstance(activation, str) or activation not in FORMS:
            raise refused("activation_function", activation, ", ".join(map(shown, FORMS)))
        return {"feedforward.form": FORMS[activation]}
