"""Runs that can be looked into, trained on nothing: a tokenizer of each kind, two layers of two heads."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from gpt.data.tokenizer import TokenizerConfig
from gpt.data.tokenizer.bpe import BPEConfig
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokenizer.char import CharConfig
from gpt.insight.inspect.heads import measure
from gpt.insight.inspect.reading import Reading
from gpt.insight.inspect.surprise import mean
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.run_folder import RunFolder

SENTENCE = "私は機械学習が大好きです"
TEXT = f"{SENTENCE}。\nA line of English.\n"
TOKENIZERS: dict[str, TokenizerConfig] = {
    "byte": ByteConfig(),
    "bpe": BPEConfig(vocab_size=260),
    "char": CharConfig(),
}


@pytest.fixture
def tokenizers():
    """One of each kind, of `TEXT` alone: bpe has joined few bytes, char has no end-of-text."""
    return {name: config.build(lambda split: iter([[TEXT]])) for name, config in TOKENIZERS.items()}


@pytest.fixture
def run_with(tmp_path, tokenizers, state_of):
    """Writes the folder of a run with one of the tokenizers."""

    def build(name="byte", context=48, **sizes):
        tokenizer = tokenizers[name]
        config = GPTConfig(**{"context": context, "n_layer": 2, "n_head": 2, "d_model": 16, **sizes})
        config = config.for_vocabulary(tokenizer.vocab_size)
        folder = tmp_path / f"a run with {name}"
        folder.mkdir()
        opened = RunFolder(folder)
        data = SimpleNamespace(tokenizer=tokenizer, fingerprint="f00d")
        opened.start({"name": name, "model": config.model_dump()}, data, keep=1)
        torch.manual_seed(0)
        opened.save(GPT(config).state_dict(), {}, state_of(1, 3.0))
        return folder

    return build


@pytest.fixture
def reading():
    """Of a text that no model read, all weights uniform over what is seen."""

    def build(labels=tuple(SENTENCE), layers=2, heads=3, bits=None, notices=(), likely=(("か", 0.75), ("↵", 0.05))):
        length = len(labels)
        uniform = torch.ones(length, length).tril() / torch.arange(1, length + 1)[:, None]
        weights = [uniform.repeat(heads, 1, 1) for _ in range(layers)]
        bits = bits or [None, *(float(i) for i in range(1, length))]
        return Reading(
            text="".join(labels),
            run="runs/mine: step 1",
            attention="2 layers of 3 heads",
            notices=list(notices),
            labels=list(labels),
            bits=bits,
            mean=mean(bits, [1] * length),
            next=list(likely),
            weights=weights,
            heads=measure(weights),
        )

    return build


@pytest.fixture
def typed(verb):
    """Types `python -m gpt inspect` with these settings; the exit code, and what is printed on both outputs."""
    return partial(verb, "inspect")
