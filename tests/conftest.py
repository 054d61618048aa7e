"""Shared by all tests."""

import functools
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tokenizers import AddedToken, decoders, normalizers, pre_tokenizers, processors, trainers

from gpt import run, run_folder, runs
from gpt.config import ROOT
from gpt.data.byte_level import GPT2, LLAMA3, QWEN
from gpt.data.tokenizer.bpe import learner
from gpt.data.tokenizer.byte import ByteConfig
from gpt.generation.decoder import choice
from gpt.generation.decoder.compiled import Compiled, export
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

CORPORA = ROOT.parent / "shared" / "corpora"
CACHE = ROOT.parent / "shared" / "tiktoken_cache"
BYTES = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)
LEARNED = ["the people of the United States ", "don't we? 日本語の文章。日本語\r\n", "naïve café 12345 <think> "] * 3


def pytest_configure() -> None:
    """One thread a process, of the tests and of what they start: pytest-xdist runs a process for each core."""
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(autouse=True)
def denormals():
    """As Python has them: what a script computes with flushes them to 0 for its process, which hypothesis refuses."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def state_of():
    """The fields of a checkpoint's state but `data`."""

    def build(step, loss=None, **more):
        counted = {"step": step, "tokens": step * 8, "elapsed": 0.5, "validation_loss": loss}
        guarded = {"skipped": 0, "skipped_in_a_row": 0, "spikes": 0, "losses": [], "scaler": {}, "accumulate": 1}
        return {**counted, **guarded, "device": "cpu", "precision": "fp32", "compiled": False, **more}

    return build


@pytest.fixture
def bytes_data():
    """What a run's folder needs to know of the data: a byte tokenizer, and a fingerprint."""
    return SimpleNamespace(tokenizer=ByteConfig().build(lambda: iter(())), fingerprint="f00d")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Where runs are, in place of the checkout's."""
    for module in (run, run_folder, runs):
        monkeypatch.setattr(module, "RUNS", tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def make_run(state_of, bytes_data):
    """Writes a run's folder, with a checkpoint for each step and its validation loss."""

    def make(folder, seed=0, steps=((1, 3.0),), config=BYTES, settings=None):
        folder.mkdir(parents=True)
        opened = run_folder.RunFolder(folder)
        opened.start(settings or {"name": "私の run", "model": config.model_dump()}, bytes_data, keep=1)
        for step, loss in steps:
            torch.manual_seed(seed + step)
            opened.save(GPT(config).state_dict(), {}, state_of(step, loss))
        return opened

    return make


@pytest.fixture
def traced(monkeypatch):
    """Decoders' programs are exported, and run without generating code, which takes long: a list of what was made."""
    made = []

    def load(self, rows, padded):
        program = export(self.model, rows, padded).module()

        def boxed_run(inputs):
            token, seen, *rest = inputs
            where, held = (rest[:2], rest[2:]) if padded else ([], rest)
            size = len(held) // self.model.config.n_layer
            return [program(token, seen, where, [held[i : i + size] for i in range(0, len(held), size)])]

        made.append((rows, padded))
        return SimpleNamespace(loader=SimpleNamespace(boxed_run=boxed_run))

    monkeypatch.setattr(Compiled, "load", load)
    monkeypatch.setattr(choice, "kept_at", lambda *arguments: Path("nowhere"))
    return made


@functools.cache
def corpus_files() -> dict[str, str]:
    """Name -> text of the text files in the shared corpora, as they are; empty where there are none."""
    return {
        str(path.relative_to(CORPORA)): path.read_bytes().decode("utf-8")
        for path in sorted(CORPORA.rglob("*"))
        if path.suffix in {".txt", ".inp"} and path.name != "SOURCES.md"
    }


@pytest.fixture
def corpora() -> dict[str, str]:
    if not corpus_files():
        pytest.skip(f"needs the text files of {Path(*CORPORA.parts[-2:])} beside the checkout")
    return corpus_files()


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """What tiktoken publishes, in a cache of our own: gpt2, cl100k_base and o200k_base can be had."""
    if not CACHE.is_dir():
        pytest.skip("needs shared/tiktoken_cache beside the checkout")
    copy = tmp_path_factory.mktemp("tiktoken")
    for file in CACHE.iterdir():
        shutil.copyfile(file, copy / file.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(copy))
        yield copy


@pytest.fixture(scope="session")
def write_model(tmp_path_factory):
    """Writes a model's folder: a tokenizer.json learned by the library, of a pattern and with special tokens."""

    def write(pattern, special=("<|endoftext|>",), text=(), normalizer=None, begin=None, end="<|endoftext|>"):
        library = learner(pattern)
        if pattern == GPT2:
            library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.decoder, library.normalizer = decoders.ByteLevel(), normalizer
        trainer = trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
        library.train_from_iterator(LEARNED, trainer)
        library.add_special_tokens(list(special))
        library.add_tokens([AddedToken(token, normalized=False) for token in text])
        if begin:
            library.post_processor = processors.TemplateProcessing(
                single=f"{begin} $A", special_tokens=[(begin, library.token_to_id(begin))]
            )
        folder = tmp_path_factory.mktemp("model")
        library.save(str(folder / "tokenizer.json"))
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
        return folder

    return write


@pytest.fixture(scope="session")
def model_folder(write_model):
    """As GPT-2's."""
    return write_model(GPT2)


@pytest.fixture(scope="session")
def models(write_model):
    """As GPT-2's, Llama 3's and Qwen3's: by name."""
    return {
        "gpt2": write_model(GPT2),
        "llama3": write_model(
            LLAMA3, ("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"), begin="<|begin_of_text|>", end="<|eot_id|>"
        ),
        "qwen3": write_model(
            QWEN,
            ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
            ("<think>", "</think>"),
            normalizers.NFC(),
            end="<|im_end|>",
        ),
    }
