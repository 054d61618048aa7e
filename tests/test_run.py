"""A trained run is opened from its folder alone."""

import os
import shutil

import pytest
import torch

import gpt
from gpt import run as runs
from gpt.config import UserError
from gpt.device import has_native_bf16
from gpt.model.config import GPTConfig
from gpt.run import load

CONFIG = GPTConfig(vocab_size=100, context=16, n_layer=1, n_head=2, d_model=8)


def test_the_best_checkpoint_is_opened_else_the_last(tmp_path, make_run):
    make_run(tmp_path / "best", steps=[(1, 2.0), (2, 1.5), (3, 1.9)])
    assert load(tmp_path / "best").checkpoint.state.step == 2
    make_run(tmp_path / "last", steps=[(1, None), (2, None)])
    assert load(tmp_path / "last").checkpoint.state.step == 2
    assert "not evaluated" in load(tmp_path / "last").describe()


def test_latest_is_the_newest_that_holds_a_checkpoint(root, make_run):
    with pytest.raises(UserError, match="train one first: python train.py"):
        load()
    for number, name in enumerate(["z_old", "a_new", "m_empty"]):
        run = make_run(root / name, steps=[] if "empty" in name else [(1, 2.0)])
        os.utime(run.folder / "config.yaml", (1000 + number, 1000 + number))
    assert load().folder.name == "a_new"


def test_a_moved_folder_opens_from_anywhere(tmp_path, monkeypatch, make_run):
    make_run(tmp_path / "here")
    before = load(tmp_path / "here", precision="fp32").generate("ab", max_new_tokens=9)
    shutil.move(tmp_path / "here", tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    run = gpt.load("there", precision="fp32")
    assert run.generate("ab", max_new_tokens=9) == before
    assert run.config["name"] == "私の run"
    assert run.tokenizer.vocab_size == 257


def test_generate_gives_a_text_or_a_list(tmp_path, make_run):
    make_run(tmp_path / "run")
    run = load(tmp_path / "run", precision="fp32")
    one = run.generate("ab", max_new_tokens=4, seed=1)
    assert isinstance(one, str)
    two = run.generate("ab", max_new_tokens=4, seed=1, num_samples=2)
    assert two[0] == one
    assert two[1] == run.generate("ab", max_new_tokens=4, seed=1, num_samples=2)[1]
    assert run.generate("ab", max_new_tokens=4, seed=2) != one
    assert len(two) == 2
    assert run.generate(["ab", "c"], max_new_tokens=4, seed=1)[0] == one
    with pytest.raises(UserError, match=r"temprature.*temperature"):
        run.generate("ab", temprature=1.0)


@pytest.mark.parametrize("precision, dtype", [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_weights_are_in_the_precision(tmp_path, precision, dtype, make_run):
    make_run(tmp_path / "run")
    run = load(tmp_path / "run", precision=precision)
    assert {p.dtype for p in run.model.parameters()} == {dtype}
    assert len(run.generate("ab", max_new_tokens=20)) > 0


@pytest.mark.parametrize("there, tells", [(False, "is not there"), (True, "holds no checkpoint")])
def test_what_is_no_run_is_refused(tmp_path, there, tells):
    if there:
        (tmp_path / "run").mkdir()
    with pytest.raises(UserError, match=f"run: .*{tells}"):
        load(tmp_path / "run")


def test_a_run_s_name_is_told_its_folder(root, make_run):
    named = make_run(root / "2026-11-30_22-00-53_mine").folder
    for run in ("mine", root / "mine"):
        with pytest.raises(
            UserError, match=rf"is not there; did you mean {named}\? name the folder of a run, or latest$"
        ):
            load(run)


def test_a_checkpoint_that_was_changed_is_refused(tmp_path, make_run):
    make_run(tmp_path / "run")
    weights = tmp_path / "run/checkpoints/step_00000001/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1  # one bit of one weight: a file that opens
    weights.write_bytes(content)
    with pytest.raises(UserError, match=r"model\.safetensors is missing or was changed"):
        load(tmp_path / "run")


def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path, make_run):
    make_run(tmp_path / "run", config=CONFIG)
    with pytest.raises(UserError, match=r"has 257 tokens, the weights have 100"):
        load(tmp_path / "run")


@pytest.mark.skipif(not has_native_bf16(torch.device("cpu")), reason="this processor does not multiply bf16")
@pytest.mark.parametrize("large, dtype", [(10**6, torch.float32), (1000, torch.bfloat16)])
def test_on_a_cpu_large_models_write_in_bf16_and_small_ones_in_fp32(tmp_path, make_run, monkeypatch, large, dtype):
    make_run(tmp_path / "run")
    monkeypatch.setattr(runs, "LARGE", large)
    assert load(tmp_path / "run", "cpu").model.embedding.weight.dtype == dtype
    assert load(tmp_path / "run", "cpu", "fp32").model.embedding.weight.dtype == torch.float32


def test_more_rows_than_tokens_are_no_fault(tmp_path, make_run):
    """A vocabulary may be rounded up, as to a multiple of 64."""
    make_run(tmp_path / "run", config=CONFIG.model_copy(update={"vocab_size": 320}))
    opened = load(tmp_path / "run")
    assert (opened.tokenizer.vocab_size, len(opened.model.embedding.weight)) == (257, 320)
