"""The model card: what a stranger needs to know of a model, as Markdown with a header of YAML."""

import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml

from gpt.checkpoint import State
from gpt.config import UserError, leaves, one_line, parse, shown
from gpt.export.portable import portable
from gpt.interop.hugging_face.architecture import Architecture
from gpt.run import Run
from gpt.run_folder import read_metrics
from gpt.run_notes import read_samples, read_summary
from gpt.training.command import command
from gpt.training.samples import opening
from gpt.training.settings import TrainSettings

PROMPT = "The"
"""Of a model whose texts are not known."""

HEADER = {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": ["tiny-gpt"]}


def written(run: Run, architecture: Architecture, name: str, remarks: Sequence[str]) -> str:
    """The card.

    Args:
        run: whose model.
        architecture: that it was written as.
        name: of the folder.
        remarks: what is to be said of the tokenizer.
    """
    c = run.model.config
    sections = [
        f"---\n{in_yaml(HEADER)}---\n\n# {one_line(name)}",
        f"A {architecture.class_name} of {run.model.count_parameters():,} parameters: {c.n_layer} layers of "
        f"{c.d_model}, {c.n_head} query heads over {c.kv_heads} key/value, context {c.context}, {c.vocab_size:,} rows "
        "in the vocabulary's table. Trained with tiny-gpt; weights are fp32, as trained.",
        f"```python\n{OPENING.format(name=in_quotes(name), prompt=in_quotes(prompt(run)))}```",
        "## Training\n\n" + "\n".join(f"- {line}" for line in told(run)),
        *(f"```sh\n{line}\n```" for line in typed(run)),
        "## Tokenizer\n\n" + "\n".join(f"- {line}" for line in tokenizer_lines(run, remarks)),
        f"## All settings\n\n```yaml\n{in_yaml(portable(run.config))}```",
    ]
    return "\n\n".join(sections) + "\n"


def in_yaml(content: Mapping[str, Any]) -> str:
    """In the order that it has."""
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def typed(run: Run) -> list[str]:
    """The command that trains the same, where the settings are a training's that is known."""
    with suppress(UserError):
        return [shlex.join(command(portable(parse(TrainSettings, run.config).model_dump())))]
    return []


def prompt(run: Run) -> str:
    """A text to begin with: as the model's own last one begins, which begins as its data do."""
    samples = read_samples(run.folder, until=run.checkpoint.state.step) if run.checkpoint else []
    text = opening(samples[-1].text) if samples else ""
    return text or PROMPT


def in_quotes(text: str) -> str:
    """As Python may write it."""
    return json.dumps(text, ensure_ascii=False)


OPENING = textwrap.dedent("""\
    # pip install torch transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained({name})
    model = AutoModelForCausalLM.from_pretrained({name})
    inputs = tokenizer({prompt}, return_tensors="pt")
    (written,) = model.generate(**inputs, max_new_tokens=100, do_sample=True)
    print(tokenizer.decode(written, skip_special_tokens=True))
""")


def told(run: Run) -> list[str]:
    """What the weights were trained on, how long, and how well they do."""
    if not run.checkpoint:
        return [f"Weights: read from {portable(run.which, 'init')}"]
    state = run.checkpoint.state
    return [
        f"Data: {one_line(data(run))}",
        f"Weights: {run.which}, after step {state.step:,}, {state.tokens:,} tokens, {state.training:,.0f} s of "
        f"training on {state.device} in {state.precision}",
        f"Validation: {losses(run, state)}",
    ]


def data(run: Run) -> str:
    """What they were trained on, as the training said it; else by the settings."""
    given = leaves({"dataset": run.config.get("dataset")})
    said = read_summary(run.folder).get("data")
    if said is None:
        return ", ".join(f"{path}={shown(value)}" for path, value in leaves(portable(given)).items())
    for path, value in given.items():
        said = said.replace(str(value), portable(value, path)) if portable(value, path) != value else said
    return said


def losses(run: Run, state: State) -> str:
    """How well they do on held-out text."""
    if state.validation_loss is None:
        return "these weights were not evaluated"
    rows: list[dict[str, Any]] = read_metrics(run.folder, until=state.step)
    bits = [row["validation_bits_per_byte"] for row in rows if row["step"] == str(state.step)]
    per_byte = ""
    with suppress(ValueError):  # anybody may have written the file
        per_byte = next((f", {float(text):.4f} bits per byte" for text in bits if text), "")
    return f"{state.validation_loss:.4f} nats per token{per_byte}"


def tokenizer_lines(run: Run, remarks: Sequence[str]) -> list[str]:
    """What a person should know of how text becomes tokens."""
    tokenizer, rows = run.tokenizer, run.model.config.vocab_size or 0
    end = tokenizer.end_of_text
    ends = "there is no end-of-text" if end is None else f"id {end} ends each document, and begins a text"
    more = rows - tokenizer.vocab_size
    padding = [f"The last {more:,} rows of the table stand for no token"] if more else []
    return [f"{tokenizer.name}, {tokenizer.vocab_size:,} tokens; {ends}", *padding, *remarks]
