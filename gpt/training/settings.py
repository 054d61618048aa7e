"""The settings of a training run: what `train.py` takes."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, NonNegativeFloat, field_validator, model_validator

from gpt.config import Choice, Config, UserError
from gpt.data.batches import Batches, evaluation_windows
from gpt.data.dataset import DatasetConfig
from gpt.data.tokenizer import Tokenizer, TokenizerConfig
from gpt.data.tokens import Prepared, prepare
from gpt.device import DTYPES, CompileMode, Precision, PrecisionName, check_memory
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training import continuation
from gpt.training.freezing import freeze
from gpt.training.horizon import Horizon, parse_duration
from gpt.training.logger import LoggerConfig
from gpt.training.optimizer import OptimizerConfig
from gpt.training.parallel import Parallel
from gpt.training.schedule import ScheduleConfig
from gpt.training.trainer import Rhythm
from gpt.training.update import refuse_uneven

Count = Annotated[int, Field(gt=0, lt=1 << 63)]
"""A number of something, one at least."""

LoggerChoice = Annotated[LoggerConfig, Choice("gpt.training.logger", "logger.*")]


class TrainSettings(Config):
    """Train a GPT on text. Without any argument: the built-in corpus, on the best device there is.

    The run gets a folder of its own, runs/DATE_TIME_NAME or hydra.run.dir=FOLDER, with its configuration, metrics.csv,
    checkpoints and, in the end, report.html; sample.py writes with it.

    Examples:
        python train.py
        python train.py steps=2000 batch_size=32 accumulate=2 seed=7
        python train.py model=gpt2 model.n_layer=6 model/position=rope
        python train.py budget=10min schedule=cosine optimizer.lr=0.01 name=longer
        python train.py -m optimizer=adamw,muon model.n_layer=2,4
        python train.py resume=auto
    """

    name: str = "gpt"
    """What the run is called; part of its folder's name."""
    seed: int = Field(default=1337, ge=0, lt=1 << 63)
    """The seed of the initial weights, of the order of the data, and of dropout."""
    device: str = "auto"
    """auto, cuda, cuda:1, mps or cpu."""
    precision: PrecisionName = "auto"
    """What matrix products are computed in: auto, fp32, bf16 or fp16."""
    compile: CompileMode = "auto"
    """off; auto: where the run is long enough to repay it; on: or eager with a warning; strict: or the run ends."""
    steps: Count = 1000
    """Updates to train for."""
    budget: str | None = None
    """Train for this long instead of `steps`: 90s, 5min, 2h."""
    batch_size: Count = 8
    """Sequences of one update."""
    accumulate: Count | Literal["auto"] = 1
    """Parts of batch_size that are computed one after the other; more of them take less memory; auto: as few as fit."""
    packing: Literal["stream", "documents"] = "stream"
    """stream: tokens see all that stands before them, other documents too; documents: they see only their own, in which
    positions restart."""
    resume: str | None = None
    """Go on with the run in this folder, or auto: with the newest of these settings that is not at its end, or a new
    one. What the run began with is kept."""
    init: str | None = None
    """Begin with the weights and the tokenizer of the run in this folder, or of the latest; hf:FOLDER_OR_NAME takes
    those of a GPT-2, Llama or Qwen3 of Hugging Face's, nanogpt:FILE those of a checkpoint of nanoGPT's."""
    freeze: list[str] = Field(default=[])
    """Parameters that stay as they are, by patterns of their names, as [embedding.*,blocks.0.*]; with init=, what is
    not to be trained on."""
    eval_every: Count = 250
    """Updates between two evaluations."""
    eval_tokens: Count | None = None
    """Tokens of the validation split that an evaluation covers, from the first on; null: all of them."""
    save_every: Count | str = 250
    """Updates between two checkpoints, or the time, as 90s, 5min or 1h; the best one is kept, and the last."""
    keep: Count = 1
    """How many of the last checkpoints are kept, besides the best."""
    parallel: Parallel = "ddp"
    """With several processes, which torchrun starts: ddp, each has the whole model; fsdp, each has a part of it."""
    clip: NonNegativeFloat = 1.0
    """Largest norm of the gradient; 0 does not clip."""
    skip_spikes: bool = False
    """Skip the update of a loss that lies far above the last ones; told of it is anyway."""
    debug: bool = False
    """Show the traceback of an error."""
    model: GPTConfig = Field(default_factory=GPTConfig)
    """Sizes and parts of the model."""
    dataset: Annotated[DatasetConfig, Choice("gpt.data.dataset", "dataset")]
    """Where text comes from."""
    tokenizer: Annotated[TokenizerConfig, Choice("gpt.data.tokenizer", "tokenizer")]
    """How text becomes tokens."""
    optimizer: Annotated[OptimizerConfig, Choice("gpt.training.optimizer", "optimizer")]
    """How gradients become updates."""
    schedule: Annotated[ScheduleConfig, Choice("gpt.training.schedule", "schedule")]
    """How the learning rate goes."""
    logger: dict[str, LoggerChoice] = Field(default_factory=dict)
    """Where metrics are shown; several at once, as [console,...]. metrics.csv is always written."""

    @classmethod
    def completed(cls, data: dict[str, Any], typed: Collection[str], run_dir: Path | None) -> dict[str, Any]:
        """With what `resume` and `init` name taken from there."""
        return continuation.completed(cls, data, typed, run_dir)

    @field_validator("budget", mode="before")
    @classmethod
    def _has_a_unit(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int | float) else value  # to be told of units, not of types

    @field_validator("save_every", mode="before")
    @classmethod
    def _is_a_number_or_a_time(cls, value: Any) -> Any:
        if isinstance(value, str) or (isinstance(value, int) and value > 0 and value is not True):
            return value
        raise ValueError(f"expected a number of updates, as 100, or a time, as 10min; got {value!r}")

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_uneven(self.batch_size, 1 if self.accumulate == "auto" else self.accumulate)
        if self.budget is not None:
            parse_duration(self.budget)
        if isinstance(self.save_every, str):
            parse_duration(self.save_every, "save_every")
        return self

    def prepare_data(
        self, folder: Path, tokenizer: Tokenizer | None = None, check_fingerprint: Callable[[str], None] | None = None
    ) -> Prepared:
        """The tokens to train on, kept in the folder; nothing is kept of what this run could not use.

        Args:
            folder: where prepared tokens live.
            tokenizer: one that there is already, in place of what the settings describe.
            check_fingerprint: as of `prepare`.

        Raises:
            UserError: the text cannot be read, or `check_data` refuses it.
            RunError: there is no room for the tokens.
        """
        prepared = prepare(
            self.dataset.build(), tokenizer or self.tokenizer, folder, self.check_data, check_fingerprint
        )
        return prepared.capped(self.eval_tokens)

    def check_model(self, precision: Precision, processes: int = 1) -> None:
        """Refuse a model that the devices of so many processes could not train; it is laid out without memory.

        Raises:
            UserError: parts that do not go together, more than a device's memory, or an attention that it lacks.
        """
        parts = processes if self.parallel == "fsdp" else 1
        if parts > 1 and precision.name == "fp16":
            raise UserError(
                "precision: with parallel=fsdp each process would find the overflows of fp16 in its own part; take "
                "bf16 or fp32, or parallel=ddp"
            )
        with torch.device("meta"):
            model = self.build_model(1)
        check_memory(model, precision.device, parts)
        for attention in model.attentions:
            attention.describe(precision.device, DTYPES[precision.name], self.packing == "documents")

    def build_model(self, vocabulary: int) -> GPT:
        """A new model for at least so many tokens, of which what is frozen asks for no gradient.

        Raises:
            UserError: parts that do not go together, or `freeze` names no parameter, or all.
        """
        return freeze(GPT(self.model.for_vocabulary(vocabulary)), self.freeze)

    def check_data(self, data: Prepared) -> None:
        """Refuse data that this run could not use.

        Raises:
            UserError: a split too short for the context, a vocabulary too large for the model, or no end-of-text where
                documents are to be told apart.
        """
        self.separator(data.tokenizer)
        context = self.model.for_vocabulary(data.tokenizer.vocab_size).context
        Batches(data.train, context, self.batch_size, self.seed)
        if data.validation is None:
            return
        evaluation_windows(data.validation, context, self.batch_size)
        if self.eval_tokens is not None and self.eval_tokens <= context:
            raise UserError(
                f"eval_tokens: {self.eval_tokens} do not fill one window of model.context {context}; "
                f"take {context + 1} or more, or null"
            )

    def separator(self, tokenizer: Tokenizer) -> int | None:
        """The token that begins a document, where tokens shall see only their own; None where they see all before them.

        Raises:
            UserError: documents are to be told apart, and the tokenizer has no end-of-text.
        """
        if self.packing == "stream":
            return None
        if tokenizer.end_of_text is None:
            raise UserError(
                "packing: documents are told apart by an end-of-text, and the text, a single document, gave "
                f"tokenizer={tokenizer.name} none; take packing=stream, a text of several documents, or tokenizer=byte"
            )
        return tokenizer.end_of_text

    def for_model(self, model: GPTConfig) -> dict[str, Any]:
        """What is stored of the settings, as plain data: the model's as it was built, and no word of resuming."""
        return self.model_copy(update={"model": model, "resume": None}).model_dump()

    def rhythm(self, accumulate: int) -> Rhythm:
        """The beat of a training whose updates have so many micro-steps."""
        if isinstance(self.save_every, int):
            return Rhythm(accumulate, self.eval_every, self.save_every)
        return Rhythm(accumulate, self.eval_every, None, parse_duration(self.save_every, "save_every"))

    def horizon(self) -> Horizon:
        """How long the training lasts."""
        return Horizon(self.steps, None if self.budget is None else parse_duration(self.budget))
