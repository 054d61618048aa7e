"""Which well-known model has our model's shape, and how it differs: what all peers ask."""

from collections.abc import Mapping
from typing import Any

from gpt.insight.bench.peer import NoPeerError
from gpt.interop.hugging_face.architecture import EXACT, Kind
from gpt.interop.hugging_face.architectures import ARCHITECTURES
from gpt.model.gpt import GPT

SHAPE = ("position.name", "norm", "feedforward.name", "qk_norm")
"""The settings that a kind is known by."""
KINDS: Mapping[tuple[Any, ...], Kind] = {
    tuple(architecture.parts[path][0] for path in SHAPE): kind for kind, architecture in ARCHITECTURES.items()
}


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
