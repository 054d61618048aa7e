"""sample.py in this process: what it tells of a sampling. As a command it is in tests/test_scripts.py."""

import importlib.util
import re

import pytest

from gpt.cli import compose
from gpt.config import ROOT
from gpt.generation.settings import SampleSettings


@pytest.fixture
def sampled(tmp_path, capsys, make_run):
    """Standard output and standard error of sample.py with these arguments."""
    folder = make_run(tmp_path / "run", steps=[(1, 2.5)]).folder
    spec = importlib.util.spec_from_file_location("sample_script", ROOT / "sample.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def sampled(*arguments):
        settings, _ = compose("sample", [f"run={folder}", "device=cpu", *arguments], SampleSettings)
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
