"""The settings of a benchmark: what `python -m gpt bench` takes."""

from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from gpt.config import ROOT, Choice, Config, UserError, nearest
from gpt.device import PrecisionName
from gpt.model.config import GPTConfig
from gpt.training.optimizer import OptimizerConfig
from gpt.training.update import refuse_uneven

RECIPES = ROOT / "configs" / "experiment"
"""Where recipes are, one yaml each."""

VOCABULARY = 4096
"""Rows of the embedding table where model.vocab_size is null: what train.py's default tokenizer learns."""

PeerName = Literal["transformers", "litgpt", "llama_cpp"]
"""A library that is measured beside ours: the name of its file."""

RaceName = Literal["training", "decoding", "loss"]

PROMPT_TOKENS = 8
"""Length of the prompt that is decoded from, at most half of the context."""

NEW_TOKENS = 128
"""How many tokens are decoded where max_new_tokens is null, at most."""


class BenchSettings(Config):
    """Measure training and cached decoding in tokens per second, side by side with other libraries on the same shape.

    Takes what train.py takes of a model and its updates. Tokens are random, below model.vocab_size (null: 4096). All
    contenders are measured in turn, in one run; while other programs use the processor, a measurement is repeated.

    Examples:
        python -m gpt bench
        python -m gpt bench model=baby model.vocab_size=65 batch_size=8
        python -m gpt bench peers=[transformers,litgpt,llama_cpp] repeats=3
        python -m gpt bench -m model.n_layer=2,4,8 model.context=64,256 hydra.sweep.dir=growth
        python -m gpt bench races=[loss] recipes=[nanogpt_cpu]
        python -m gpt bench model=gpt2 model.vocab_size=50257 model.context=256 batch_size=2
        python -m gpt bench peers=[] compile=on decode_batch=[1,16] repeats=3
    """

    seed: int = Field(default=1337, ge=0, lt=1 << 63)
    """The seed of weights and tokens."""
    device: str = "auto"
    """auto, cuda, cuda:1, mps or cpu."""
    precision: PrecisionName = "auto"
    """What is measured: auto is fp32 and whatever faster one the device has; else this one alone."""
    compile: Literal["off", "on", "strict"] = "off"
    """on: train and decode compiled too, as rows of their own; strict: and fail where that fails."""
    batch_size: PositiveInt = 8
    """Sequences of one update."""
    accumulate: PositiveInt = 1
    """Parts of batch_size that are computed one after the other."""
    clip: NonNegativeFloat = 1.0
    """Largest norm of the gradient; 0 does not clip."""
    races: list[RaceName] = Field(default=["training", "decoding"], min_length=1)
    """What is measured: speed in training and decoding; loss: what train.py's recipes reach, and in which time."""
    recipes: list[str] = Field(default=["nanogpt_cpu"], min_length=1)
    """Who is in the race to a loss: names of configs/experiment, each trained as long as it says."""
    overrides: str = ""
    """What train.py takes, for all recipes: overrides='dataset=text dataset.path=notes.txt dataset.holdout=tail'."""
    decode_batch: list[PositiveInt] = Field(default=[1, 8], min_length=1)
    """How many texts are decoded side by side; each number is a race of its own."""
    max_new_tokens: PositiveInt | None = None
    """Tokens to decode after the prompt; null: 128, or as many as the context takes."""
    peers: list[PeerName] = Field(default=["transformers"])
    """What is measured beside: transformers, litgpt, llama_cpp; [] measures ours alone."""
    repeats: PositiveInt = 5
    """Measurements of each contender, after one that does not count."""
    seconds: PositiveFloat = 3.0
    """How long a measurement lasts, at least."""
    redos: NonNegativeInt = 3
    """How often a measurement that others disturbed is repeated before it is taken as it is."""
    debug: bool = False
    """Show the traceback of an error."""
    model: GPTConfig = Field(default_factory=GPTConfig)
    """Sizes and parts of the model."""
    optimizer: Annotated[OptimizerConfig, Choice("gpt.training.optimizer", "optimizer")]
    """How gradients become updates; peers always have AdamW."""

    @field_validator("recipes")
    @classmethod
    def _are_there(cls, recipes: list[str]) -> list[str]:
        there = sorted(file.stem for file in RECIPES.glob("*.yaml"))
        for name in recipes:
            if name not in there:
                raise ValueError(f"there is no {name!r}; {nearest(name, there)}there are {', '.join(there)}")
        return recipes

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_uneven(self.batch_size, self.accumulate)
        if self.model.context < 2:
            raise UserError("model.context: 1 leaves no room for a prompt and a new token; take 2 or more")
        if self.prompt_tokens + self.new_tokens > self.model.context:
            raise UserError(
                f"max_new_tokens: {self.new_tokens} after a prompt of {self.prompt_tokens} exceed model.context "
                f"{self.model.context}; take at most {self.model.context - self.prompt_tokens}"
            )
        return self

    @property
    def shape(self) -> GPTConfig:
        """The model, its vocabulary resolved."""
        return self.model.model_copy(update={"vocab_size": self.model.vocab_size or VOCABULARY})

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt, resolved."""
        return min(PROMPT_TOKENS, self.model.context // 2)

    @property
    def new_tokens(self) -> int:
        """How many tokens are decoded, resolved."""
        return self.max_new_tokens or min(NEW_TOKENS, self.model.context - self.prompt_tokens)
