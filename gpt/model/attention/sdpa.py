"""PyTorch's fused scaled dot-product attention (Dao et al. 2022, FlashAttention, where that kernel applies)."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from gpt.config import UserError
from gpt.model.attention import Attention, AttentionConfig, Place, _flex, _unfused
from gpt.model.attention._softmax import SoftmaxAttention, attend_once
from gpt.model.config import GPTConfig
from gpt.model.mask import Where, additive
from gpt.model.position import biases

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}

SHORT = 1024
"""Tokens of a padded prompt or so: up to that many, kernels that are first compiled for it would not pay."""

CANNOT = ("No available kernel", "No viable backend")
"""PyTorch's words, on CUDA and on a CPU, for a kernel that it is held to and that cannot do a call."""


class SdpaConfig(AttentionConfig):
    """PyTorch's fused kernels: the same result as `reference`, without the weights in memory."""

    name: Literal["sdpa"] = "sdpa"
    backend: Literal["auto", "flash", "efficient", "cudnn", "math"] = "auto"
    """The kernel of a training: flash, memory-efficient, cuDNN's, or plain operations; auto takes the fastest that can
    do a call, as happens whenever a trained model is used, on whatever device that is."""

    def build(self, model: GPTConfig, layer: int) -> Attention:
        """The module."""
        return Sdpa(model, self.backend)


class Sdpa(SoftmaxAttention):
    """torch.nn.functional.scaled_dot_product_attention, with a mask only where one is needed."""

    def __init__(self, model: GPTConfig, backend: str = "auto") -> None:
        super().__init__(model)
        self.backend = backend
        self.biased = biases(model)
        self.context = model.context

    def mix(self, query: Tensor, key: Tensor, value: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """One fused call."""
        if self._documents(query, key, place):
            return _flex.attend(self.visible, query, key, value, place)
        # causal over positions 0, 1, 2, ..., and nothing else
        plain = key_where is None and place.bias is None and self.visible is Attention.visible
        if plain and query.size(2) == 1:  # it sees all that there is, however much that is
            return self.fused(query, key, value, None)
        causal = plain and query.size(2) == key.size(2)
        mask = None if causal else self.score_mask(query, key, place, key_where)
        return self.fused(query, key, value, mask, causal)

    def fused(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
        """PyTorch's call, in training by the kernel that was asked for; unfused where none was and that is faster.

        Raises:
            UserError: that kernel cannot do it.
        """
        if causal and not self._holds and _unfused.pays(query, self._dropped):
            return _unfused.attend_causally(query, key, value, self._dropped)
        if torch.compiler.is_compiling() and not self.training and query.size(2) == 1 and query.device.type == "cpu":
            return attend_once(query, self.repeat(key), self.repeat(value), mask)
        try:
            with self._held():
                return F.scaled_dot_product_attention(
                    query,
                    key,
                    value,
                    attn_mask=mask,
                    dropout_p=self._dropped,
                    is_causal=causal,
                    enable_gqa=query.size(1) != key.size(1),
                )
        except RuntimeError as error:
            if not self._holds or not any(words in str(error) for words in CANNOT):
                raise
            masked = "" if mask is None else " with a mask"
            raise UserError(
                f"model.attention.backend: {self.backend} cannot attend{masked} in "
                f"{str(query.dtype).removeprefix('torch.')} on {query.device.type}; take auto or another backend"
            ) from None

    def flexible(self, device: torch.device, biased: bool, width: int) -> bool:
        """Whether FlexAttention may compute a layer like this, in the mode that it is in."""
        return not self._holds and _flex.supports(device, biased, self._dropped, width)

    def _documents(self, query: Tensor, key: Tensor, place: Place) -> bool:
        """Whether this is a text in documents at once, and FlexAttention can skip what they hide from one another."""
        length = query.size(2)
        whole = place.where is not None and 1 < length == key.size(2) and (torch.is_grad_enabled() or length > SHORT)
        return whole and self.flexible(query.device, place.bias is not None, query.size(3))

    @property
    def _dropped(self) -> float:
        return self.dropout if self.training else 0.0

    @property
    def _holds(self) -> bool:
        return self.training and self.backend != "auto"

    def _held(self) -> AbstractContextManager[None]:
        return sdpa_kernel(BACKENDS[self.backend]) if self._holds else nullcontext()

    def score_mask(self, query: Tensor, key: Tensor, place: Place, key_where: Where | None) -> Tensor:
        """What is added to the scores: the position's bias, or 0, and -inf where nothing is seen."""

        def make() -> Tensor:
            return additive(*self.mask(key, place, key_where), query.dtype)

        return place.once(("added", self.visible, key_where is None, key.size(2), query.dtype), make)

    def describe(self, device: torch.device, dtype: torch.dtype, packed: bool = False) -> str:
        """The kernel that PyTorch takes for a call of this layer's shape, or what takes its place for documents."""
        if packed and self.flexible(device, self.biased, self.head_dim):
            return "FlexAttention"
        masked = packed or self.biased
        with torch.enable_grad() if self.training else torch.no_grad():
            text = torch.empty(1, 1, self.context, 1, device=device, dtype=dtype)
            if not masked and not self._holds and _unfused.pays(text, self._dropped):
                return "matrix products and a softmax"
        return self.kernel(device, dtype, masked)

    def kernel(self, device: torch.device, dtype: torch.dtype, masked: bool) -> str:
        """The kernel that PyTorch takes for heads like this layer's, with a mask or with the causal flag.

        Raises:
            UserError: it is held to one that cannot.
        """
        query, key = (
            torch.empty(1, heads, 128, self.head_dim, device=device, dtype=dtype)
            for heads in (self.n_head, self.n_kv_head)
        )
        mask = torch.zeros(1, 1, 128, 128, device=device, dtype=dtype) if masked else None
        with self._held():
            self.fused(query, key, key, mask, causal=not masked)
            choice = torch._fused_sdp_choice(
                query, key, key, mask, self._dropped, not masked, enable_gqa=self.n_kv_head != self.n_head
            )
        name = next(name for name, backend in BACKENDS.items() if backend.value == choice)
        return f"PyTorch's {name} kernel"
