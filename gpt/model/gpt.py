"""The model: embed, blocks, norm, head; and its initialisation as a table."""

import math
from collections.abc import Callable
from fnmatch import fnmatch

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from gpt.model.attention import Attention, Place
from gpt.model.block import Block
from gpt.model.cache import Cache
from gpt.model.config import GPTConfig
from gpt.model.dropout import Dropout
from gpt.model.mask import Where
from gpt.model.norm import build_norm
from gpt.model.position import Position

LOGITS = 1 << 30
"""Logits that a training computes at once; with their gradients, in fp32 they take 8 GiB."""


def scaled(config: GPTConfig) -> float:
    """GPT-2's standard deviation of what is added to the residual stream, which 2 n_layer branches do."""
    return config.init_std / math.sqrt(2 * config.n_layer)


INITIALISATION: tuple[tuple[str, Callable[[GPTConfig], float | str]], ...] = (
    # name of the parameter   normal with this standard deviation, or a constant
    ("*norm.weight",          lambda _: "ones"),
    ("*.bias",                lambda _: "zeros"),
    ("*.output.weight",       lambda c: c.output_init if c.output_init == "zeros" else scaled(c)),
    ("*",                     lambda c: c.init_std),
)  # fmt: skip


class GPT(nn.Module):
    """A decoder-only transformer. Stateless: what it remembers between calls is the cache that is passed in."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        if config.vocab_size is None:
            raise ValueError("config.vocab_size must be set to build a GPT; it is the tokenizer's in a run")
        self.config = config
        # from_pretrained, since an Embedding would draw its rows itself, only for `initialise` to draw them again
        self.embedding = nn.Embedding.from_pretrained(torch.empty(config.vocab_size, config.d_model), freeze=False)
        self.position: Position = config.position.build(config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layer))
        self.norm = build_norm(config, config.d_model)
        self.head: nn.Module | None = None if config.tied else nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.initialise()

    def initialise(self) -> None:
        """Draw all parameters by the first row of `INITIALISATION` that their name matches; on meta there are none."""
        if self.embedding.weight.is_meta:
            return
        for name, parameter in self.named_parameters():
            rule = next(rule for pattern, rule in INITIALISATION if fnmatch(name, pattern))(self.config)
            match rule:
                case "ones":
                    nn.init.ones_(parameter)
                case "zeros":
                    nn.init.zeros_(parameter)
                case std:
                    nn.init.normal_(parameter, std=float(std))

    def forward(
        self,
        tokens: Tensor,
        targets: Tensor | None = None,
        where: Where | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Logits, or with targets the loss of each.

        Args:
            tokens: (batch, length) int64.
            targets: (batch, length) int64, the token after each; -100 (PyTorch's `ignore_index`) counts for nothing.
            where: where the tokens are, for padding and documents; None means positions `cache.length`, ... on.
            cache: what was seen before, from `build_cache`; this call is added to it.

        Returns:
            (batch, length, vocab_size) logits; with targets (batch, length) losses in nats, 0 where ignored.

        Raises:
            ValueError: more tokens, with those in the cache, than the position variant has places for, or `where` given
                in some calls with a cache and not in others.
        """
        hidden = self.hidden(tokens, where, cache)
        return self.logits(hidden) if targets is None else self.losses(hidden, targets)

    def hidden(self, tokens: Tensor, where: Where | None = None, cache: Cache | None = None) -> Tensor:
        """The residual stream after the last norm: (batch, length) -> (batch, length, d_model)."""
        if cache:
            cache.check(where)
        place = self._place(tokens, where, cache)
        x = self._embed(tokens, place)
        for index, block in enumerate(self.blocks):
            x = block(x, place, cache.memories[index] if cache else None)
        if cache:
            cache.advance(tokens.size(1), where)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """(batch, length, d_model) -> (batch, length, vocab_size)."""
        logits = F.linear(hidden, self.embedding.weight) if self.head is None else self.head(hidden)
        cap = self.config.logit_softcap
        return logits if cap is None else cap * (logits.float() / cap).tanh()

    def losses(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Of each target: (batch, length, d_model), (batch, length) -> (batch, length) in nats.

        Where there are more than `LOGITS` logits, a part of them is in memory at a time, and is computed again in the
        backward.
        """
        rows = max(1, LOGITS // self.embedding.num_embeddings)
        if targets.numel() <= rows:
            return token_losses(self.logits(hidden), targets)
        parts = zip(hidden.flatten(0, 1).split(rows), targets.flatten().split(rows), strict=True)
        losses = [
            checkpoint(lambda x, y: token_losses(self.logits(x), y), *part, use_reentrant=False) for part in parts
        ]
        return torch.cat(losses).unflatten(0, targets.shape)

    def build_cache(self, capacity: int) -> Cache:
        """An empty cache for `capacity` tokens a row, prompt and new ones together."""
        return Cache([attention.build_memory(capacity) for attention in self.attentions])

    @property
    def attentions(self) -> list[Attention]:
        """The attention of each layer."""
        return [block.attention for block in self.blocks if isinstance(block, Block)]

    @property
    def endless(self) -> bool:
        """Whether text beyond the context is read as text within it, in constant memory and time for a token."""
        return self.position.relative and all(layer.endless and layer.forgets for layer in self.attentions)

    def _place(self, tokens: Tensor, where: Where | None, cache: Cache | None) -> Place:
        start = cache.length if cache else 0
        end = start + tokens.size(1)
        if self.position.limit is not None and end > self.position.limit:
            raise ValueError(f"{end} tokens exceed the {self.position.limit} positions that there are")
        position = (where or Where.contiguous(start, tokens.size(1), tokens.device)).position
        beyond = end > self.config.context
        back = self.position.rotation((self.config.context - 1 - position).clamp(max=0)) if beyond else None
        return Place(where, position, self.position.rotation(position), self.position.bias, back)

    def _embed(self, tokens: Tensor, place: Place) -> Tensor:
        x = self.embedding(tokens)
        if self.config.scale_embedding:
            x = x * math.sqrt(self.config.d_model)
        added = self.position.embed(place.position)
        return self.dropout(x if added is None else x + added.to(x.dtype))

    def count_parameters(self) -> int:
        """All parameters, tied ones once."""
        return sum(p.numel() for p in self.parameters())

    def flops_per_token(self) -> int:
        """Floating-point operations to train on one token of a full context (Chowdhery et al. 2022, appendix B).

        6 for each parameter (2 forward, 2 for its own gradient, 2 for that of what it is applied to), 4 for a frozen
        one, none for those of tables that are only looked up, which the head is not; and 12 · n_head · head_dim in each
        layer for every key that a query is compared with: the whole context, or as much as the attention looks at.
        """
        c = self.config
        tables = [self.position] if self.head is None else [self.position, self.embedding]
        looked_up = {p for table in tables for p in table.parameters()}
        applied = [(4 + 2 * p.requires_grad) * p.numel() for p in self.parameters() if p not in looked_up]
        attention = 12 * c.n_head * c.head_size * sum(attention.compared(c.context) for attention in self.attentions)
        return sum(applied) + attention


def token_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of each target in nats, fp32, 0 where it is -100, PyTorch's `ignore_index`.

    Shapes: (..., vocab_size), (...) -> (...).
    """
    losses = F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), reduction="none")
    return losses.view_as(targets)
