"""PyTorch's fused scaled dot-product attention, which picks the fastest kernel there is (flash where it applies)."""

from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from gpt.model.attention import Attention, AttentionConfig, Place, SoftmaxAttention
from gpt.model.config import GPTConfig
from gpt.model.mask import Where


class SdpaConfig(AttentionConfig):
    """PyTorch's fused kernels: the same result as `reference`, without the weights in memory."""

    name: Literal["sdpa"] = "sdpa"

    def build(self, model: GPTConfig, layer: int) -> Attention:
        """The module."""
        return Sdpa(model)


class Sdpa(SoftmaxAttention):
    """torch.nn.functional.scaled_dot_product_attention, with a mask only where one is needed."""

    def mix(self, query: Tensor, key: Tensor, value: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """One fused call."""
        # causal over positions 0, 1, 2, ..., and nothing else
        plain = key_where is None and place.bias is None and self.visible is Attention.visible
        square, single = query.size(2) == key.size(2), query.size(2) == 1
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if plain and (square or single) else self._mask(query, key, place, key_where),
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=plain and square,
            enable_gqa=self.n_kv_head != self.n_head,
        )

    def _mask(self, query: Tensor, key: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """Boolean, or where the position variant has a bias, the bias with -inf where nothing is seen."""
        visible, bias = self.mask(key, place, key_where)
        return visible if bias is None else bias.masked_fill(~visible, float("-inf")).to(query.dtype)
