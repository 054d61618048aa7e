"""A prompt, read by a run's model."""

import pytest
import torch

from gpt.config import UserError
from gpt.generation.text import encode_prompt
from gpt.insight.inspect import reading as module
from gpt.insight.inspect.reading import fitted, read
from gpt.insight.inspect.settings import InspectSettings
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.run import load

SENTENCE = "私は機械学習が大好きです"


@pytest.mark.parametrize("name, tokens", [("byte", 36), ("char", 12)])
def test_what_is_told_of_each_token(run_with, name, tokens):
    run = load(run_with(name), "cpu", "fp32")
    seen = read(run, InspectSettings(prompt=SENTENCE, top=3))
    assert (len(seen.labels), len(seen.bits), seen.text) == (tokens, tokens, SENTENCE)
    assert [w.shape for w in seen.weights] == [(2, tokens, tokens)] * 2
    assert seen.heads.entropy.shape == (2, 2)
    assert len(seen.next) == 3
    assert seen.notices == []


def test_surprise_and_next_tokens_are_the_models(run_with):
    run = load(run_with("byte"), "cpu", "fp32")
    ids = encode_prompt(run.tokenizer, SENTENCE)
    seen = read(run, InspectSettings(prompt=SENTENCE))
    with torch.inference_mode():
        losses = run.model(torch.tensor([ids[:-1]]), torch.tensor([ids[1:]]))[0] / torch.log(torch.tensor(2.0))
        expected = run.model(torch.tensor([ids]))[0, -1].softmax(-1)
    torch.testing.assert_close(torch.tensor(seen.bits[1:]), losses)
    assert seen.next[0][1] == pytest.approx(expected.max().item())
    assert seen.mean.per_byte == pytest.approx(losses.mean().item())  # a byte each


def test_rows_that_the_tokenizer_has_not_get_no_probability(run_with, tokenizers):
    """The table is larger than the vocabulary: all that is expected sums to 1 without those rows."""
    run = load(run_with("char"), "cpu", "fp32")
    run.model.embedding.weight.data = torch.cat([run.model.embedding.weight.data, 9 * torch.ones(5, 16)])
    seen = read(run, InspectSettings(prompt="私", top=999))
    assert len(seen.next) == run.tokenizer.vocab_size
    assert sum(p for _, p in seen.next) == pytest.approx(1)


def test_a_longer_prompt_loses_its_beginning_and_that_is_said(run_with):
    run = load(run_with("byte", context=8), "cpu", "fp32")
    seen = read(run, InspectSettings(prompt=SENTENCE))
    assert seen.labels == ["き 2/3", "き 3/3", "で 1/3", "で 2/3", "で 3/3", "す 1/3", "す 2/3", "す 3/3"]
    assert seen.notices == ["the prompt has 36 tokens, the model's context is 8: its first 28 are left out"]


def test_an_endless_model_reads_on_and_what_is_too_much_is_left_out(monkeypatch):
    settings = {"vocab_size": 7, "context": 8, "n_layer": 2, "n_head": 2, "d_model": 8}
    with torch.device("meta"):
        plain = GPT(GPTConfig(**settings))
        endless = GPT(GPTConfig(**settings, attention={"name": "sliding_window"}))
    assert endless.endless
    assert fitted(endless, 50) == (50, [])
    assert fitted(plain, 50)[0] == 8
    monkeypatch.setattr(module, "MOST_WEIGHTS", 800)  # 4 heads: half of 20 x 20 each
    assert fitted(endless, 50) == (
        20,
        ["the prompt has 50 tokens, of 4 heads no more can be shown: its first 30 are left out"],
    )
    assert fitted(endless, 20) == (20, [])


def test_an_empty_prompt_begins_a_document(run_with):
    seen = read(load(run_with("byte"), "cpu", "fp32"), InspectSettings())
    assert (seen.labels, seen.bits, seen.mean) == (["<end of text>"], [None], None)


def test_what_cannot_be_read_is_refused(run_with):
    run = load(run_with("char"), "cpu", "fp32")
    with pytest.raises(UserError, match="prompt: it is empty, and this tokenizer has no end-of-text"):
        read(run, InspectSettings())
    with pytest.raises(UserError, match="^prompt: .*é"):
        read(run, InspectSettings(prompt="é"))
    assert read(run, InspectSettings(prompt="é私", unknown="skip")).labels == ["私"]
