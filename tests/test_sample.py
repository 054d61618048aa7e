"""sample.py in this process: what it tells of a sampling. As a command it is in tests/test_scripts.py."""

import importlib.util
import re

import pytest
import torch

from gpt.checkpoint import State
from gpt.cli import compose
from gpt.config import ROOT
from gpt.data.tokenizer.byte import ByteConfig
from gpt.generation.settings import SampleSettings
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.run import RunFolder

CONFIG = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)


@pytest.fixture
def sampled(tmp_path, capsys):
    """Standard output and standard error of sample.py with these arguments."""
    torch.manual_seed(0)
    run = RunFolder(tmp_path, {"model": CONFIG.model_dump()}, ByteConfig().build(lambda: iter(())))
    run.save(GPT(CONFIG), State(step=1, tokens=8, elapsed=0.5, validation_loss=2.5))
    spec = importlib.util.spec_from_file_location("sample_script", ROOT / "sample.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def sampled(*arguments):
        settings, _ = compose("sample", [f"run={tmp_path}", "device=cpu", *arguments], SampleSettings)
        module.sample(settings, None)
        return capsys.readouterr()

    return sampled


@pytest.mark.parametrize("precision, dtype", [("fp32", "float32"), ("bf16", "bfloat16")])
def test_it_tells_which_weights_these_are(sampled, precision, dtype):
    err = sampled(f"precision={precision}", "max_new_tokens=2", "prompt=a").err
    assert re.search(rf"step 1 \(the best checkpoint, validation loss 2\.5000\).* cpu, {dtype}$", err, re.M)


def test_it_tells_how_much_was_written_and_why_it_ended(sampled):
    out, err = sampled("precision=fp32", "prompts=[a,b]", "num_samples=2", "max_new_tokens=3", "temperature=0")
    assert re.search(r"^12 tokens in \d+\.\d s, [\d,]+ tokens/s; ended by length$", err, re.M), "told once"
    assert re.findall(r"^--- (\d) of 4 ---$", out, re.M) == ["1", "2", "3", "4"]


def test_every_ending_is_told(sampled):
    long = "b" * 14  # 2 tokens are left of the context of 16
    err = sampled("precision=fp32", f"prompts=[a,{long}]", "max_new_tokens=3", "overflow=stop").err
    assert re.search(r"^5 tokens in .* ended by length, context$", err, re.M), err
