"""The model card: what a stranger needs to know of a model, as Markdown with a header of YAML."""

import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from gpt.checkpoint import State
from gpt.config import ROOT, UserError, leaves, one_line, parse, shown
from gpt.interop.hugging_face.architecture import Architecture
from gpt.run import Run
from gpt.run_folder import read_metrics
from gpt.run_notes import read_samples, read_summary
from gpt.training.command import command
from gpt.training.samples import opening
from gpt.training.settings import TrainSettings

PROMPT = "The"
"""Of a model whose texts are not known."""

PATHS = ("init", "resume")
"""Settings that may name a place, beside those whose names end with path."""

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
        "## All settings\n\n```yaml\n"
        + yaml.safe_dump(portable(run.config), sort_keys=False, allow_unicode=True)
        + "```",
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


def portable(settings: Any, key: str = "") -> Any:
    """Settings whose paths tell nothing of the folders of their machine: below the checkout's, or the last part.

    >>> portable({"init": "hf:/home/ada/gpt2", "dataset": {"path": "/home/ada/novel.txt", "separator": "/a/"}})
    {'init': 'hf:gpt2', 'dataset': {'path': 'novel.txt', 'separator': '/a/'}}
    """
    if isinstance(settings, Mapping):
        return {name: portable(value, str(name)) for name, value in settings.items()}
    if not isinstance(settings, str) or not (key.endswith("path") or key in PATHS):
        return settings
    kind, colon, path = settings.rpartition(":")
    if not Path(path).is_absolute():
        return settings
    below = Path(path).is_relative_to(ROOT)
    return f"{kind}{colon}{Path(path).relative_to(ROOT) if below else Path(path).name}"


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
        return [f"Weights: read from {run.which}"]
    state = run.checkpoint.state
    data = leaves(portable({"dataset": run.config.get("dataset")}))
    settings = ", ".join(f"{path}={shown(value)}" for path, value in data.items())
    return [
        f"Data: {one_line(read_summary(run.folder).get('data', settings))}",
        f"Weights: {run.which}, after step {state.step:,}, {state.tokens:,} tokens, {state.training:,.0f} s of "
        f"training on {state.device} in {state.precision}",
        f"Validation: {losses(run, state)}",
    ]


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
