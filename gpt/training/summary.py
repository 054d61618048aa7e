"""What a person is told: what a run will do, before it does it; and what came of it."""

import shlex
from pathlib import Path

from gpt.config import ROOT
from gpt.data.batches import Batches
from gpt.data.tokens import Prepared
from gpt.device import Precision
from gpt.files import nearby
from gpt.generation.settings import GenerationSettings
from gpt.generation.text import TextGeneration
from gpt.model.gpt import GPT
from gpt.training.evaluation import Evaluation
from gpt.training.horizon import Horizon
from gpt.training.update import Cost

SAMPLE_TOKENS = 150
"""Length of the sample that is shown at the end."""

PROMPT = 20
"""Characters of the prompt that is proposed, at most."""


def summarize(
    model: GPT,
    data: Prepared,
    batches: Batches,
    horizon: Horizon,
    precision: Precision,
    cost: Cost,
) -> list[tuple[str, str]]:
    """The lines that a person reads before the first update.

    Args:
        model: what is trained.
        data: what it is trained on.
        batches: how.
        horizon: how long.
        precision: where and in which numbers.
        cost: of one update.
    """
    c = model.config
    flops = model.flops_per_token() * batches.tokens_per_step
    updates = horizon.updates(cost.seconds)
    epochs = batches.epochs(updates)
    validation = f"{len(data.validation):,} for validation" if data.validation is not None else "none for validation"
    return [
        (
            "model",
            f"{model.count_parameters():,} parameters: {c.n_layer} layers of {c.d_model}, {c.n_head} query heads "
            f"over {c.kv_heads} key/value, context {c.context}; "
            f"{c.attention.name}, {c.position.name}, {c.feedforward.name}",
        ),
        ("data", data.description),
        (
            "tokens",
            f"{len(data.train):,} tokens for training, {validation}; {data.tokenizer.vocab_size:,} in the vocabulary",
        ),
        (
            "training",
            f"{'about ' if horizon.budget else ''}{updates:,} steps of {batches.batch_size} x {c.context} tokens: "
            f"each token is seen {epochs:{'.1f' if epochs >= 1 else '.2g'}} times",
        ),
        ("device", f"{precision.device}; {precision.name}: {precision.reason}; compile {cost.compiled}"),
        (
            "cost",
            f"a step is {flops / 1e9:,.3g} GFLOP and takes {cost.seconds:.2g} s, all of them about "
            f"{duration(updates * cost.seconds)}",
        ),
    ]


def conclude(folder: Path, evaluation: Evaluation | None, model: GPT, data: Prepared) -> None:
    """Print a sample and what came of a run; the very last line is `validation loss`, in nats per token."""
    # A document begins after end-of-text; without one, the sample goes on from the first words of the training text.
    prompt = "" if data.tokenizer.end_of_text is not None else data.tokenizer.decode(data.train.tokens[:8].tolist())
    (sample,) = TextGeneration(model, data.tokenizer, [prompt], GenerationSettings(max_new_tokens=SAMPLE_TOKENS)).run()
    here, script = (nearby(path) for path in (folder, ROOT / "sample.py"))
    print(f"\nA sample:\n\n{(prompt + sample.text).strip()}\n")
    print(f"Run's folder:  {here}")
    typed = shlex.join([f"run={here}", f"prompt={first_words(data)}"])
    print(f"To write more: python {script} {typed} max_new_tokens=300")
    if evaluation:
        print(
            f"Validation:    {evaluation.loss:.4f} nats per token (perplexity {evaluation.perplexity:,.1f}), "
            f"{evaluation.bits_per_byte:.4f} bits per byte, over {evaluation.tokens:,} tokens"
        )
    print(f"validation loss {evaluation.loss:.4f}" if evaluation else "validation loss n/a")


def first_words(data: Prepared) -> str:
    """What the training text begins with, so much of its first line as makes a prompt."""
    text = data.tokenizer.decode(data.train.tokens[:64].tolist())
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= PROMPT else line[:PROMPT].rpartition(" ")[0] or line[:PROMPT]


def duration(seconds: float) -> str:
    """For people.

    >>> duration(140), duration(40), duration(9000)
    ('2.3 min', '40 s', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
