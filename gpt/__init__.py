"""A tiny GPT training framework.

Notation in docstrings: batch - sequences at once; length - tokens of a sequence; query_length, key_length - where they
differ; n_head, n_kv_head - query heads, key/value heads; head_dim - width of a head; d_model - width of the residual
stream; vocab_size - tokens there are; context - the most tokens seen at once. Tensors are (batch, length, ...) outside
of attention and (batch, heads, length, head_dim) inside.
"""

from gpt.config import UserError
from gpt.model.attention.reference import scaled_dot_product_attention
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.model.mask import Where, build_causal_mask
from gpt.run import Run, load

__all__ = [
    "GPT", "GPTConfig", "Run", "UserError", "Where", "build_causal_mask", "load", "scaled_dot_product_attention",
]  # fmt: skip
