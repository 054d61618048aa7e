"""Evaluation over a whole split: every token but the first is a target once, dropout off."""

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from gpt.data.batches import IGNORE, Tokens, evaluation_windows
from gpt.data.tokens import Prepared
from gpt.device import Precision
from gpt.generation.generate import evaluation_mode
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.update import MicroBatch, Update, where_packed


class Evaluation(NamedTuple):
    """A split's loss by one set of weights."""

    loss: float
    """Mean over targets, in nats per token, end-of-text included."""
    bits_per_byte: float
    """Of the text: neither end-of-text's loss nor any byte for it counts. Compares across tokenizers."""
    tokens: int
    """Targets."""

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        return math.exp(min(self.loss, 700.0))  # e^700 is about the largest float


class Evaluator:
    """Evaluates a model on fixed windows.

    Args:
        model: put into evaluation mode for the time.
        split: what it is evaluated on, in windows of the model's context.
        rows: windows at once.
        byte_lengths: bytes that each token id stands for, 0 for end-of-text.
        precision: what the forward computes in.
        separator: the token that begins a document, where tokens see only their own; None: they see all before them.
        processes: those that share the work; each gets the result.

    Raises:
        UserError: the split does not fill one window.
    """

    def __init__(
        self,
        model: GPT,
        split: Tokens,
        rows: int,
        byte_lengths: np.ndarray,
        precision: Precision,
        separator: int | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.model = model
        self.windows = partial(evaluation_windows, split, model.config.context, rows)
        self.windows()  # refuses a split that is too short now, and not after hours of training
        self.byte_lengths = torch.from_numpy(byte_lengths.astype(np.int64))
        self.precision = precision
        self.separator = separator
        self.processes = processes or Processes(precision.device)

    @torch.no_grad()  # not in inference mode: what FSDP gathers in it, no training could use
    def __call__(self) -> Evaluation:
        """The split's evaluation, dropout off; sums are fp64 on the host, so two of the same weights are identical."""
        nats = text_nats = 0.0
        tokens = size = 0
        for inputs, targets in shared_out(self.windows(), self.processes):
            there = inputs.to(self.precision.device)
            with self.precision.autocast(), evaluation_mode(self.model):
                where = where_packed(there, self.separator)
                losses = self.model(there, targets.to(self.precision.device), where)
            losses = losses.cpu().double()
            lengths = self.byte_lengths[targets.clamp(min=0)] * (targets != IGNORE)
            nats += losses.sum().item()
            text_nats += losses[lengths > 0].sum().item()
            tokens += int((targets != IGNORE).sum())
            size += int(lengths.sum())
        totals = torch.tensor((nats, text_nats, tokens, size), dtype=torch.float64)
        nats, text_nats, tokens, size = self.processes.total(totals).tolist()
        return Evaluation(nats / tokens, text_nats / math.log(2) / size if size else math.nan, int(tokens))


def shared_out(windows: Iterator[MicroBatch], processes: Processes) -> Iterator[MicroBatch]:
    """Every so-many-th of the windows' batches, as many for each process, since a model may need all to compute.

    Where there is none left for a process, it gets one without targets.
    """
    while turn := list(islice(windows, processes.size)):
        inputs, targets = turn[0]
        yield turn[processes.rank] if processes.rank < len(turn) else (inputs, torch.full_like(targets, IGNORE))


def build_evaluator(update: Update, data: Prepared, rows: int) -> Evaluator | None:
    """The evaluator of the validation split on what the updates train; None where the data hold nothing out.

    Args:
        update: its model, and the processes that share the work.
        data: whose validation split.
        rows: windows at once, over all processes.
    """
    if data.validation is None:
        return None
    lengths = data.tokenizer.byte_lengths()
    processes = update.spread.processes
    rows = max(1, rows // processes.size)
    return Evaluator(update.model, data.validation, rows, lengths, update.precision, update.separator, processes)
