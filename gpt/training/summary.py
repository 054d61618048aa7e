"""What a person is told: what a run will do, before it does it; and what came of it."""

import shlex
from collections.abc import Callable
from pathlib import Path

from gpt.checkpoint import State
from gpt.config import ROOT
from gpt.data.batches import Batches
from gpt.data.tokens import Prepared
from gpt.device import DTYPES
from gpt.files import nearby
from gpt.model.gpt import GPT
from gpt.run_folder import RunFolder
from gpt.training.evaluation import Evaluation
from gpt.training.horizon import Horizon
from gpt.training.samples import first_words, write_sample
from gpt.training.update import Cost, Update

NOISY = 0.1
"""Share of the processor that others may use before a person is told: less changes no plan."""


def summarize(update: Update, data: Prepared, batches: Batches, horizon: Horizon, cost: Cost) -> list[tuple[str, str]]:
    """The lines that a person reads before the first update.

    Args:
        update: of what, where and in which numbers.
        data: what is trained on.
        batches: how.
        horizon: how long.
        cost: of one update.

    Raises:
        UserError: the device cannot compute the attention.
    """
    model, precision = update.model, update.precision
    c = model.config
    flops = model.flops_per_token() * batches.tokens_per_step
    updates = horizon.updates(cost.seconds)
    which, left = "those to come" if horizon.done else "all of them", horizon.seconds_left(cost.seconds)
    epochs = batches.epochs(updates)
    validation = f"{len(data.validation):,} for validation" if data.validation is not None else "none for validation"
    return [
        (
            "model",
            f"{model.count_parameters():,} parameters: {c.n_layer} layers of {c.d_model}, {c.n_head} query heads "
            f"over {c.kv_heads} key/value, context {c.context}; "
            f"{c.attention.name}, {c.position.name}, {c.feedforward.name}",
        ),
        *trained(model),
        ("attention", f"{c.attention.name}: {attends(update)}"),
        ("data", data.description),
        (
            "tokens",
            f"{len(data.train):,} tokens for training, {validation}; {data.tokenizer.vocab_size:,} in the vocabulary",
        ),
        (
            "training",
            f"{'about ' if horizon.budget else ''}{updates:,} steps of {batches.batch_size} x {c.context} tokens: "
            f"each token is seen {epochs:{'.1f' if epochs >= 1 else '.2g'}} times"
            f"{'; what a budget of time gives cannot be repeated exactly' if horizon.budget else ''}",
        ),
        *packing(update, data, batches),
        ("device", f"{precision.device}; {precision.name}: {precision.reason}; compile {cost.compiled}"),
        (
            "cost",
            f"a step is {flops / 1e9:,.3g} GFLOP and takes {cost.seconds:.2g} s, {which} about {duration(left)}"
            + noise(cost.disturbed),
        ),
    ]


def noise(disturbed: float | None) -> str:
    """That others were at work while something was measured, where that tells.

    >>> noise(0.05), noise(0.5)
    ('', '; other programs used 50% of the processor meanwhile, so it may be less')
    """
    if (disturbed or 0.0) <= NOISY:
        return ""
    return f"; other programs used {disturbed:.0%} of the processor meanwhile, so it may be less"


def trained(model: GPT) -> list[tuple[str, str]]:
    """The line that tells what is trained, where not all is."""
    frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    if not frozen:
        return []
    kept = sum(parameter.numel() for parameter in frozen)
    return [("freeze", f"{model.count_parameters() - kept:,} parameters are trained, {kept:,} stay as they are")]


def attends(update: Update) -> str:
    """By what the layers attend, each way once."""
    device, dtype = update.precision.device, DTYPES[update.precision.name]
    packed = update.separator is not None
    return ", ".join(dict.fromkeys(attention.describe(device, dtype, packed) for attention in update.model.attentions))


def packing(update: Update, data: Prepared, batches: Batches) -> list[tuple[str, str]]:
    """The line that tells of documents, where tokens see only their own.

    Each token of a window but the first may be the end-of-text that begins one more.
    """
    if update.separator is None:
        return []
    documents = 1 + (batches.context - 1) * data.train.counts.documents / len(data.train)
    return [("packing", f"documents: a token sees only its own, a window holds parts of {documents:,.1f} on average")]


def conclude(
    run: RunFolder,
    evaluation: Evaluation | None,
    model: GPT | None,
    data: Prepared,
    report: Callable[[Path], Path | None] = lambda _: None,
) -> dict[str, str]:
    """Print a sample and what came of a run; the very last line is `validation loss`, in nats per token.

    Args:
        run: where it is.
        evaluation: of the last weights.
        model: they; None where another process has them, which concludes.
        data: what was trained on.
        report: leaves a page about a run in its folder; its path, None where there is none.

    Returns:
        What a sweep's table tells of it, by column.
    """
    if model is None:
        return {}
    here, script = (nearby(path) for path in (run.folder, ROOT / "sample.py"))
    text = run.sample.text if run.sample else write_sample(model, data)
    print(f"\nA sample:\n\n{text.strip()}\n")
    print(f"Run's folder:  {here}")
    if page := report(run.folder):
        print(f"Report:        {nearby(page)}")
    words = first_words(data)
    what = [f"prompt={words}", "max_new_tokens=300"] if words else ["num_samples=10"]
    print(f"To write more: python {script} {shlex.join([f'run={here}', *what])}")
    if run.last:
        print(f"Time:          {spent(run.last.state)}")
    if evaluation:
        print(
            f"Validation:    {evaluation.loss:.4f} nats per token (perplexity {evaluation.perplexity:,.1f}), "
            f"{evaluation.bits_per_byte:.4f} bits per byte, over {evaluation.tokens:,} tokens"
        )
        best = run.best.state if run.best else None
        if best and best.validation_loss is not None and best.validation_loss < evaluation.loss:
            print(
                f"Best:          {best.validation_loss:.4f} at step {best.step:,}, which sample.py takes; "
                "the sample above is of the last step"
            )
    loss = f"{evaluation.loss:.4f}" if evaluation else "n/a"
    print(f"validation loss {loss}")
    return {"validation loss": loss, "folder": here}


def spent(state: State) -> str:
    """What the time of a run went to."""
    asides = [f"{seconds:,.1f} s of {what}" for what, seconds in state.asides.items() if seconds >= 0.05]
    return ", ".join([f"{state.training:,.1f} s of training", *asides])


def duration(seconds: float) -> str:
    """For people.

    >>> duration(140), duration(40), duration(9000)
    ('2.3 min', '40 s', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
