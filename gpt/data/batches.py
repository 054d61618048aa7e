"""Token files -> inputs and targets, as a pure function of the step: resuming needs no state.

With N tokens and windows of `context`, an epoch has W = (N - context) // context windows, from an offset in
[0, N - W·context) that is drawn for the epoch: window w of it is the inputs offset + w·context up to the next
window's, and as targets the tokens one further on. Fewer than 2·context tokens are left out, other ones in
each epoch. Sequence g of a training, counted over all its batches, is window permutation(g mod W) of epoch
floor(g / W).

The permutation is computed, not stored: a Feistel network (Luby & Rackoff 1988) whose round keys come from
(seed, epoch) permutes the smallest [0, 4^h) that holds W, and what falls outside [0, W) is permuted again
until it falls inside (cycle walking, Black & Rogaway 2002).
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from gpt.config import UserError
from gpt.data.token_file import TokenFile

IGNORE = -100
"""The target of a place that pads the last window; torch's cross-entropy ignores it by default."""

ROUNDS = 6
"""Of the Feistel network; four look random already, and small domains need a few more."""

Tokens = TokenFile | np.ndarray
"""A prepared split, or (a test's) array of ids, shape (tokens,), which is trusted to hold no id too large."""


class Batches:
    """A training's batches.

    Args:
        tokens: the training split.
        context: tokens of a sequence.
        batch_size: sequences of one update, over all processes and micro-steps.
        seed: not negative; another one gives another order.

    Raises:
        UserError: the split is shorter than 2·context.

    >>> batches = Batches(np.arange(20), context=4, batch_size=2, seed=0)
    >>> inputs, targets = batches.batch(step=0)
    >>> inputs.shape, bool((targets == inputs + 1).all())
    (torch.Size([2, 4]), True)
    """

    def __init__(self, tokens: Tokens, context: int, batch_size: int, seed: int) -> None:
        check_length(tokens, context, 2 * context, "an epoch begins at a random place within the first of them")
        self.tokens = tokens
        self.context = context
        self.batch_size = batch_size
        self.seed = seed
        self.windows = (len(tokens) - context) // context
        """Sequences of an epoch."""
        self.offsets = len(tokens) - self.windows * context
        """Places at which an epoch may begin: so many that no token is left out of all epochs."""

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one update learns from."""
        return self.batch_size * self.context

    def epochs(self, steps: int) -> float:
        """How often each token will have been seen after so many updates."""
        return steps * self.batch_size / self.windows

    def batch(
        self, step: int, micro_step: int = 0, accumulate: int = 1, rank: int = 0, world_size: int = 1
    ) -> tuple[Tensor, Tensor]:
        """One process's share of one micro-step of an update.

        All shares together are the same sequences whatever `accumulate` and `world_size` are.

        Returns:
            Inputs and targets: int64, (batch_size / (accumulate·world_size), context), on the CPU.

        Raises:
            UserError: batch_size is not a multiple of accumulate·world_size; or the file holds an id outside
                the vocabulary.
        """
        shares = accumulate * world_size
        if self.batch_size % shares:
            raise UserError(
                f"batch_size={self.batch_size} cannot be shared out evenly over accumulate={accumulate} "
                f"times {world_size} processes; choose a multiple of {shares}"
            )
        rows = self.batch_size // shares
        first = step * self.batch_size + (micro_step * world_size + rank) * rows
        return gather(self.tokens, self.starts(np.arange(first, first + rows)), self.context)

    def micro_batches(
        self, step: int, accumulate: int, rank: int = 0, world_size: int = 1
    ) -> list[tuple[Tensor, Tensor]]:
        """One process's shares of all micro-steps of an update."""
        return [self.batch(step, micro_step, accumulate, rank, world_size) for micro_step in range(accumulate)]

    def starts(self, sequences: np.ndarray) -> np.ndarray:
        """Where in the split each sequence of the training begins: both int64, shape (rows,)."""
        epochs, places = np.divmod(sequences, self.windows)
        starts = np.empty_like(places)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            offset, keys = draw(self.seed, int(epoch))
            starts[here] = offset % self.offsets + permute(places[here], self.windows, keys) * self.context
        return starts


def evaluation_windows(tokens: Tokens, context: int, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The whole split in order: every token but the first is a target exactly once.

    The last window is padded: inputs with id 0, which a causal model's real places do not see, and targets
    with `IGNORE`. The last batch may have fewer rows.

    Args:
        tokens: the split.
        context: tokens of a window.
        batch_size: windows of a batch, at most.

    Returns:
        Inputs and targets, each int64 of shape (rows, context), on the CPU.

    Raises:
        UserError: at once, where the split does not fill one window; later, where the file holds an id
            outside the vocabulary.
    """
    check_length(tokens, context, context + 1, "each token is judged by the next")
    return _evaluation_windows(tokens, context, batch_size)


def _evaluation_windows(tokens: Tokens, context: int, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    whole = (len(tokens) - 1) // context
    for first in range(0, whole, batch_size):
        yield gather(tokens, np.arange(first, min(first + batch_size, whole)) * context, context)
    rest = (len(tokens) - 1) % context
    if rest:
        inputs, targets = gather(tokens, np.array([whole * context]), rest)
        padding = (0, context - rest)
        yield (
            torch.nn.functional.pad(inputs, padding),
            torch.nn.functional.pad(targets, padding, value=IGNORE),
        )


def check_length(tokens: Tokens, context: int, needed: int, reason: str) -> None:
    """Refuse a split that is too short.

    Raises:
        UserError: with its tokens, the context and the ways out.
    """
    if len(tokens) < needed:
        name = f"{tokens.path.stem} split" if isinstance(tokens, TokenFile) else "split"
        raise UserError(
            f"model.context={context}: the {name} has {len(tokens):,} tokens, where {needed:,} are needed "
            f"({reason}); lower model.context or give more text"
        )


def gather(tokens: Tokens, starts: np.ndarray, length: int) -> tuple[Tensor, Tensor]:
    """The `length` tokens from each start on, and the ones that follow each of them.

    Raises:
        UserError: an id outside the vocabulary, so that no device ever sees it.
    """
    stored = tokens.tokens if isinstance(tokens, TokenFile) else tokens
    # asarray: indexing a memory map makes a memory map of every result, which costs more than the copy itself
    ids = np.asarray(stored)[starts[:, None] + np.arange(length + 1)].astype(np.int64)
    if isinstance(tokens, TokenFile):
        tokens.check_ids(int(ids.max()))
    windows = torch.from_numpy(ids)
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def draw(seed: int, epoch: int) -> tuple[int, np.ndarray]:
    """An epoch's random numbers: one for its offset, and a key for each round of its permutation.

    Straight from numpy's SeedSequence: its output is guaranteed never to change, that of `Generator` is not.
    """
    offset, *keys = np.random.SeedSequence([seed, epoch]).generate_state(1 + ROUNDS, np.uint64)
    return int(offset), np.array(keys)


def permute(places: np.ndarray, size: int, keys: np.ndarray) -> np.ndarray:
    """Where each of `places` in [0, size) goes in the permutation of [0, size) that belongs to the keys.

    Args:
        places: int64, (rows,).
        size: at least 1.
        keys: uint64, one a round.
    """
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    permuted = feistel(places.astype(np.uint64), half, keys)
    while (outside := permuted >= size).any():
        permuted[outside] = feistel(permuted[outside], half, keys)
    return permuted.astype(np.int64)


def feistel(numbers: np.ndarray, half: int, keys: np.ndarray) -> np.ndarray:
    """A permutation of the numbers of 2·half bits: each round can be undone, whatever `scramble` does."""
    bits, low = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = numbers >> bits, numbers & low
    for key in keys:
        left, right = right, left ^ (scramble(right ^ key) & low)
    return left << bits | right


def scramble(x: np.ndarray) -> np.ndarray:
    """Spread every bit of 64 over all others: the output function of SplitMix64 (Steele et al. 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
