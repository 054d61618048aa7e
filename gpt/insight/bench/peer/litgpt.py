"""Lightning's litgpt, which has rotary models only.

training   forward, its cross-entropy over the whole batch, backward, the same clipping, fused AdamW
decoding   its generate, one text, and its batched_generate_fn, several, with its own cache of keys and values
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from gpt.device import DTYPES, Precision
from gpt.insight.bench.peer import NoPeerError, Peer, require
from gpt.insight.bench.race import Contender, Entry
from gpt.insight.bench.settings import BenchSettings
from gpt.insight.bench.shape import kind_of, surplus
from gpt.insight.bench.training import PeerTraining, Training
from gpt.interop.hugging_face.architecture import hidden_width
from gpt.model.gpt import GPT
from gpt.model.position.rope import Rope

NAME: Literal["litgpt"] = "litgpt"


def build(model: GPT) -> Peer:
    """The peer of our model, in training mode, fp32, on its device.

    Raises:
        NoPeerError: it has no model of this shape, or is not installed.
    """
    if kind_of(model, NAME) == "gpt2":
        raise NoPeerError("litgpt has no model with learned positions")
    found = require(NAME, "bench")
    import litgpt

    device = model.embedding.weight.device
    made = litgpt.GPT(litgpt.Config(**settings(model))).to(device)
    if model.config.tied:
        made.lm_head.weight = made.transformer.wte.weight
    size = surplus(sum(parameter.numel() for parameter in made.parameters()), model)
    dropped = ["it drops nothing"] if model.config.dropout else []
    return Litgpt(made.train(), "; ".join([f"{found}, GPT, {size}", *dropped]))


def settings(model: GPT) -> dict[str, Any]:
    """What gives litgpt's model our shape."""
    c = model.config
    assert isinstance(model.position, Rope), f"{type(model.position).__name__} is not rotary"
    return {
        "block_size": c.context,
        "padded_vocab_size": c.vocab_size,
        "n_layer": c.n_layer,
        "n_head": c.n_head,
        "n_query_groups": c.kv_heads,
        "n_embd": c.d_model,
        "head_size": c.head_size,
        "intermediate_size": hidden_width(model),
        "norm_class_name": "RMSNorm",
        "norm_eps": c.norm_eps,
        "norm_qk": c.qk_norm,
        "mlp_class_name": "LLaMAMLP",
        "parallel_residual": False,
        "rotary_percentage": 1.0,
        "rope_base": round(model.position.base),
        "bias": c.bias,
    }


class Litgpt(Peer):
    """A model of litgpt."""

    name = NAME

    def __init__(self, model: Any, description: str) -> None:
        self.model = model
        self.description = description

    def training(self, settings: BenchSettings) -> Training:
        """What trains it."""
        return PeerTraining(NAME, self.model, loss, settings)

    def decoding(self, precision: Precision, prompts: Sequence[Sequence[int]], new_tokens: int) -> Contender:
        """What writes with it; a copy for each number of texts, which its cache is made for."""
        copied, length = deepcopy(self.model).eval(), len(prompts[0]) + new_tokens
        dtype = DTYPES[precision.name]
        copied.max_seq_length = length
        copied.set_kv_cache(batch_size=len(prompts), device=precision.device, dtype=dtype)
        given = torch.tensor(prompts, device=precision.device)
        return Contender(Entry(NAME, precision.name), Generating(copied.to(dtype), given, length))


def loss(forward: Any, inputs: Tensor, targets: Tensor) -> Tensor:
    """The mean loss over all targets."""
    from litgpt.utils import chunked_cross_entropy

    scalar: Tensor = chunked_cross_entropy(forward(inputs), targets, chunk_size=0)
    return scalar


@dataclass
class Generating:
    """Writes texts side by side."""

    model: Any
    prompts: Tensor
    length: int
    """Of a text, with its prompt."""

    def __call__(self) -> int:
        """Write them once; how many tokens they are."""
        from litgpt.generate import base

        if len(self.prompts) == 1:
            text = base.generate(self.model, self.prompts[0], self.length, temperature=0.0, include_prompt=False)
            return int(text.numel())
        steps = base.batched_generate_fn(
            self.model,
            self.prompts,
            self.length,
            sample_args={"temperature": 0.0},
            include_prompt=False,
            include_eos=True,
        )
        return sum(len(tokens) for tokens in steps)
