"""What a GPT is, as data: its sizes and its choices of attention, position and feedforward."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpt.config import Choice, Config, UserError, Variant, variant_class

LARGEST = 1 << 24
Size = Annotated[int, Field(ge=1, le=LARGEST)]
"""A number of something; what is larger is a mistake, and would be allocated."""


def _variant(package: str, name: str) -> Variant:
    return variant_class(package, name)(name=name)


class GPTConfig(Config):
    """A decoder-only transformer's configuration.

    Raises:
        UserError: sizes that do not divide, or choices that do not go together.
    """

    vocab_size: Size | None = None
    """Rows of the embedding table; null takes the tokenizer's vocabulary."""
    context: Size = 256
    """The most tokens that the model sees at once."""
    n_layer: int = Field(default=4, ge=1, le=1000)
    """Number of blocks."""
    n_head: int = Field(default=3, ge=1, le=1 << 16)
    """Number of query heads."""
    n_kv_head: Size | None = None
    """Number of key/value heads: null or n_head is multi-head, 1 is multi-query, between is grouped-query attention."""
    d_model: Size = 192
    """Width of the residual stream."""
    head_dim: Size | None = None
    """Width of one head; null is d_model / n_head."""
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    """Normalisation before each branch and before the head."""
    norm_eps: float = Field(default=1e-6, ge=1e-12, le=1000)
    """Added to the variance before the square root."""
    norm_gain: bool = True
    """Whether norms multiply by a learned gain."""
    qk_norm: bool = True
    """Normalise queries and keys over the head's width before they are rotated."""
    bias: bool = False
    """Biases in linear layers and layer norms."""
    tied: bool = True
    """One table for token embedding and head."""
    scale_embedding: bool = False
    """Multiply token embeddings by sqrt(d_model), as Vaswani et al. (2017) do."""
    logit_softcap: float | None = Field(default=None, gt=0)
    """Logits stay between minus this and this: cap · tanh(logits / cap) (Gemma Team 2024); null leaves them."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of embeddings, attention weights and branch outputs that is dropped in training."""
    init_std: float = Field(default=0.02, gt=0, le=100)
    """Standard deviation of the initial weights."""
    output_init: Literal["scaled", "zeros"] = "scaled"
    """Initial weights of branch outputs: 1/sqrt(2 n_layer) of init_std as GPT-2's, or 0, so that each block begins as
    the identity."""
    attention: Annotated[Variant, Choice("gpt.model.attention", "model.attention")] = Field(
        default_factory=lambda: _variant("gpt.model.attention", "sdpa")
    )
    """How queries and keys become a mixture of values."""
    position: Annotated[Variant, Choice("gpt.model.position", "model.position")] = Field(
        default_factory=lambda: _variant("gpt.model.position", "rope")
    )
    """How the model knows where a token stands."""
    feedforward: Annotated[Variant, Choice("gpt.model.feedforward", "model.feedforward")] = Field(
        default_factory=lambda: _variant("gpt.model.feedforward", "swiglu")
    )
    """The network applied to each token by itself."""

    @model_validator(mode="after")
    def _sizes_divide(self) -> Self:
        if self.head_dim is None and self.d_model % self.n_head:
            raise UserError(
                f"model.d_model: {self.d_model} is not divisible by n_head {self.n_head}; "
                f"take a multiple, or set model.head_dim"
            )
        if self.n_head * self.head_size > LARGEST:
            raise UserError(
                f"model.head_dim: {self.n_head} heads of width {self.head_size} are wider than {LARGEST:,} together; "
                f"take fewer or narrower ones"
            )
        if self.n_head % self.kv_heads:
            raise UserError(
                f"model.n_kv_head: n_head {self.n_head} is not divisible by n_kv_head {self.kv_heads}; "
                f"take a divisor of {self.n_head}"
            )
        return self

    def for_vocabulary(self, size: int) -> Self:
        """The same with a table for at least `size` tokens: exactly that many where `vocab_size` is null.

        Raises:
            UserError: `vocab_size` is set and smaller.
        """
        if self.vocab_size is not None and self.vocab_size < size:
            raise UserError(
                f"model.vocab_size: {self.vocab_size} is less than the tokenizer's {size}; take null or at least {size}"
            )
        return self.model_copy(update={"vocab_size": self.vocab_size or size})

    @property
    def kv_heads(self) -> int:
        """Number of key/value heads, resolved."""
        return self.n_kv_head or self.n_head

    @property
    def head_size(self) -> int:
        """Width of one head, resolved."""
        return self.head_dim or self.d_model // self.n_head
