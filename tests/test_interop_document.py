"""docs/interop.md: its programs run, and lm-eval's tasks name what they write. lm-eval itself is not needed here."""

import json
import re

import pytest
import torch
import yaml

from gpt.config import ROOT
from gpt.data.tokenizer.byte import Byte
from gpt.interop.hugging_face.architectures import holding
from gpt.interop.hugging_face.writing import write
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

TEXT = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
WRITER, MEASURE = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
ROLLING, CHOICE = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", TEXT, re.M | re.S))


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(task, folder):
    """Of the file that a task reads."""
    name = task["dataset_kwargs"]["data_files"][task["validation_split"]]
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def test_the_tasks_read_what_is_written(there):
    exec(WRITER, {})
    texts, questions = rows(ROLLING, there), rows(CHOICE, there)
    assert (len(texts), len(questions)) == (7, 126)
    assert ROLLING["doc_to_target"] == "{{text}}"
    together = " ".join(" ".join(row["text"].split()) for row in texts)
    for row in questions:
        query, choices, right = (row[CHOICE[key]] for key in ("doc_to_text", "doc_to_choice", "doc_to_target"))
        assert (len(query.split()), [len(choice.split()) for choice in choices]) == (48, [12] * 4)
        assert f"{query} {choices[right]}" in together


def test_each_byte_counts_once_in_our_measure(there, capsys):
    """A model that knows nothing takes log2(257) = 8.005625 bits for each of 257 tokens, in windows of 8 or fewer."""
    model = GPT(GPTConfig(vocab_size=257, context=8, n_layer=1, n_head=2, d_model=8))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    (there / "my-model").mkdir()
    write(holding(model), model, Byte(), there / "my-model")
    lengths = (3, 8, 9, 20)
    (there / "addresses.jsonl").write_text("".join(json.dumps({"text": "x" * n}) + "\n" for n in lengths))
    exec(MEASURE, {})
    assert capsys.readouterr().out == "8.005625 bits per byte\n"
