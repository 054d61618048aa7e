"""Qwen3 (Yang et al. 2025): Llama with norms of queries and keys, and layers that may see a window only."""

from collections.abc import Mapping
from typing import Any, ClassVar

from gpt.interop.hugging_face.architecture import Kind, Size, refused
from gpt.interop.hugging_face.llama import Llama, attention_settings, rotary
from gpt.interop.naming import Row
from gpt.model.attention.sliding_window import SlidingWindow, SlidingWindowConfig
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

FULL, WINDOW = "full_attention", "sliding_attention"


class Qwen3(Llama):
    """Qwen3ForCausalLM."""

    kind: ClassVar[Kind] = "qwen3"
    class_name = "Qwen3ForCausalLM"
    parts: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **Llama.parts,
        "attention.name": ("sdpa", "reference", "sliding_window"),
        "qk_norm": (True,),
        "bias": (False,),
    }
    sizes: ClassVar[Mapping[str, Size]] = {
        **Llama.sizes,
        "vocab_size":              Size("vocab_size", 151936),
        "max_position_embeddings": Size("context", 32768),
        "intermediate_size":       Size("feedforward.hidden", 22016),
        "num_key_value_heads":     Size("n_kv_head", 32),
        "head_dim":                Size("head_dim", 128),
    }  # fmt: skip
    fixed: ClassVar[Mapping[str, Any]] = {"hidden_act": "silu"}
    rows: ClassVar[tuple[Row, ...]] = (
        *Llama.rows,
        Row("blocks.*.attention.query_norm", ("model.layers.*.self_attn.q_norm",)),
        Row("blocks.*.attention.key_norm", ("model.layers.*.self_attn.k_norm",)),
    )

    def limits(self, config: GPTConfig) -> list[str]:
        """Its window has no sinks."""
        return ["attention.sinks"] * bool(getattr(config.attention, "sinks", 0))

    def written(self, model: GPT) -> dict[str, Any]:
        """Biases, rotary angles, and which layers see a window."""
        return {"attention_bias": model.config.bias, **attention_settings(model), **windows(model)}

    def read(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """The same."""
        if theirs.get("attention_bias", False):
            raise refused("attention_bias", True, "false")
        return {**rotary(theirs), **self.attention(theirs)}

    def attention(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """Plain, or windows in the layers that have them.

        Raises:
            UserError: other kinds of layers; or the last one has a window and not all have, where ours ends with one
                that sees everything.
        """
        window = theirs.get("sliding_window", 4096) if theirs.get("use_sliding_window", False) else None
        layers, first = theirs.get("num_hidden_layers", 32), theirs.get("max_window_layers", 28)
        if not (isinstance(layers, int) and isinstance(first, int) and layers <= 1000):
            return {}  # the number of layers is refused, by its name
        by_number = [WINDOW if window is not None and layer >= first else FULL for layer in range(layers)]
        kinds = theirs.get("layer_types") or by_number
        if kinds == [FULL] * layers:
            return {}
        if window is None or kinds != [WINDOW if kind == WINDOW else FULL for kind in kinds] or len(kinds) != layers:
            raise refused("layer_types", kinds, f"{FULL}, and with use_sliding_window {WINDOW}, one for each layer,")
        letters = "".join("S" if kind == WINDOW else "L" for kind in kinds)
        if letters.endswith("S") and "L" in letters:
            raise refused("layer_types", kinds, f"{WINDOW} for all, or {FULL} for the last")
        more = {"attention.window": window, "attention.sinks": 0, "attention.layers": letters}
        return {"attention.name": "sliding_window", **more}


def windows(model: GPT) -> dict[str, Any]:
    """Which layers see a window, and how long it is."""
    config = model.config.attention
    if not isinstance(config, SlidingWindowConfig):
        return {}
    kinds = [WINDOW if isinstance(layer, SlidingWindow) else FULL for layer in model.attentions]
    window = config.window or max(1, model.config.context // 4)
    return {"use_sliding_window": True, "sliding_window": window, "layer_types": kinds}
