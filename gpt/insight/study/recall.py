"""What attention can recall: a small model of each variant learns multi-query associative recall.

Pairs of a key and a value are told in the first half of a text, and asked for in the second. In theory one layer finds

    all tokens       any answer, however many pairs there are and however far away they stand
    window           those whose pair is among the last `window` tokens
    columns          beyond the window also those whose pair stands in a column, one of `stride`
    running state    any, but with more pairs than features of a key it confuses them

(Arora et al. 2023, Zoology, arXiv:2312.04927; gpt/insight/recall/associative.py has the task.) In n_layer layers a
window reaches n_layer · (window - 1) tokens back, but what comes that way must fit into the tokens between.
"""

from collections.abc import Callable
from typing import Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from gpt.config import UserError, parse, variant_names
from gpt.data.batches import IGNORE
from gpt.insight.recall.associative import Batch, Recall
from gpt.insight.recall.page import Questions, Results, findings
from gpt.insight.study import Context, Findings, Study, StudyConfig
from gpt.insight.variants import PACKAGE, configured
from gpt.model.config import GPTConfig, Size
from gpt.model.gpt import GPT
from gpt.training.optimizer.adamw import AdamwConfig
from gpt.training.schedule.wsd import WsdConfig

SAME = "reference"
"""The variant that is left out: it computes what sdpa does."""

EVALUATION = 0
"""The step whose rows accuracy is measured on; training has those after it."""


AT_ONCE = 128
"""Texts that are evaluated side by side."""


class RecallConfig(StudyConfig):
    """What each attention variant can recall, by how far away the answer is and how much there is to remember."""

    name: Literal["recall"] = "recall"
    pairs: list[PositiveInt] = Field([2, 4, 8, 16, 32], min_length=1)
    """Pairs in a text; the texts of a batch take these numbers in turn."""
    places: int = Field(32, ge=2, le=1 << 12)
    """Tokens of a text's first half, for pairs and blanks, and of its second half, for questions."""
    values: int = Field(8, ge=2, le=1 << 12)
    """Different values: a guess is right once in so many."""
    window: Size = 32
    """Tokens of it, for the variants that have one."""
    sinks: int = Field(0, ge=0, le=1 << 20)
    """First tokens that stay visible, likewise."""
    stride: Size = 4
    """Tokens from one column to the next, likewise."""
    n_layer: PositiveInt = 1
    """Layers of the model; with more than one, pairs beyond the window are reached by way of the tokens between."""
    d_model: Size = 64
    """Its width."""
    head_dim: Size = 8
    """Width of its one head: how many features linear attention has for a key."""
    steps: PositiveInt = 1500
    """Updates."""
    batch_size: PositiveInt = 40
    """Texts of an update."""
    lr: float = Field(5e-3, gt=0, le=1000)
    """Peak learning rate of AdamW."""
    evaluated: PositiveInt = 1000
    """Texts that accuracy is measured on; none of them is trained on."""

    def build(self) -> Study:
        """The study.

        Raises:
            UserError: more pairs than places, fewer texts than numbers of pairs, or a size that is too large.
        """
        if max(self.pairs) > self.places:
            raise UserError(f"study.pairs: {max(self.pairs)} do not fit study.places {self.places}; take more places")
        for key, texts in (("batch_size", self.batch_size), ("evaluated", self.evaluated)):
            if texts < len(self.pairs):
                raise UserError(
                    f"study.{key}: {texts} texts are too few for {len(self.pairs)} numbers of pairs; "
                    f"take {len(self.pairs)} or more"
                )
        return RecallStudy(self)

    def shape(self, name: str, vocab_size: int) -> GPTConfig:
        """The model with a variant; without positions, as only what a token is matters here, and not where it is.

        Raises:
            UserError: a size that is too large.
        """
        wanted = {"window": self.window, "sinks": self.sinks, "stride": self.stride}
        return parse(
            GPTConfig,
            {
                "vocab_size": vocab_size, "context": 2 * self.places, "n_layer": self.n_layer, "n_head": 1,
                "d_model": self.d_model, "head_dim": self.head_dim, "init_std": 0.1,
                "attention": configured(name, wanted), "position": {"name": "none"},
                "feedforward": {"name": "relu2", "hidden": 2 * self.d_model},
            },
            "study",
        )  # fmt: skip


class RecallStudy(Study):
    """Trains one model after the other, all from the same texts."""

    def __init__(self, config: RecallConfig) -> None:
        self.config = config
        self.task = Recall(config.places, config.values, config.pairs)
        names = [name for name in variant_names(PACKAGE) if name != SAME]
        self.shapes = {name: config.shape(name, self.task.vocab_size) for name in names}

    def run(self, context: Context) -> Findings:
        """Tables and a figure of accuracies."""
        asked, right = self.task.batch(context.seed, EVALUATION, self.config.evaluated), {}
        with context.progress(len(self.shapes) * self.config.steps) as advance:
            for name, shape in self.shapes.items():
                torch.manual_seed(context.seed)
                model = GPT(shape).to(context.device)
                self.train(model, context, advance)
                right[name] = self.answered(model, asked, context.device)
        return findings(Results(self.task, self.questions(asked), right, self.config.window))

    def train(self, model: GPT, context: Context, advance: Callable[[float], None]) -> None:
        """AdamW, a short warmup, and a decay at the end."""
        c = self.config
        optimizer = AdamwConfig(lr=c.lr, weight_decay=0.01).build(model)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: WsdConfig(warmup=0.05).multiplier(min(1.0, (step + 1) / c.steps))
        )
        for step in range(1, 1 + c.steps):
            batch = self.task.batch(context.seed, EVALUATION + step, c.batch_size).to(context.device)
            loss = model(batch.tokens, batch.targets).sum() / (batch.targets != IGNORE).sum()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            advance(1)

    def answered(self, model: GPT, asked: Batch, device: torch.device) -> Tensor:
        """Which questions the model answers right: (texts, questions)."""
        with torch.inference_mode():
            given = [model(tokens.to(device)).argmax(dim=-1).cpu() for tokens in asked.tokens.split(AT_ONCE)]
        return (torch.cat(given) == asked.targets)[:, self.config.places :]

    def questions(self, asked: Batch) -> Questions:
        """What there is to say of each question."""
        half = self.config.places
        distance = asked.distance[:, half:]
        position = torch.arange(half, 2 * half) - distance
        return Questions(distance, asked.pairs[:, None].expand_as(distance), (position + 1) % self.config.stride == 0)
