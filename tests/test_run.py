"""A run's folder: claimed once, written while training, opened alone."""

import csv
import os
import shutil
from datetime import datetime

import pytest
import torch
import yaml

import gpt
from gpt import run as runs
from gpt.checkpoint import State
from gpt.config import UserError
from gpt.data.tokenizer.byte import ByteConfig
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.run import METRICS, RunFolder, claim_folder, load

CONFIG = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path / "runs")
    return tmp_path / "runs"


def make_run(folder, seed=0, steps=((1, 3.0),)):
    folder.mkdir(parents=True)
    tokenizer = ByteConfig().build(lambda: iter(()))
    run = RunFolder(folder, {"name": "私の run", "model": CONFIG.model_dump()}, tokenizer)
    for step, loss in steps:
        torch.manual_seed(seed + step)
        run.save(GPT(CONFIG), State(step=step, tokens=8, elapsed=0.5, validation_loss=loss))
    return run


def test_folders_are_claimed_once(root, monkeypatch):
    class OneSecond(datetime):
        @classmethod
        def now(cls):
            return cls(2024, 2, 29, 13, 5, 9)

    monkeypatch.setattr(runs, "datetime", OneSecond)
    claimed = [claim_folder(None, "a/b: 私") for _ in range(3)]
    plain = "2024-02-29_13-05-09_a-b--私"
    assert claimed == [root / plain, root / f"{plain}-2", root / f"{plain}-3"]
    assert all(folder.is_dir() for folder in claimed)


def test_a_run_never_overwrites_another(tmp_path):
    wanted = tmp_path / "deep" / "mine"
    assert claim_folder(wanted, "x") == wanted
    assert claim_folder(wanted, "x") == wanted, "an empty folder may be taken"
    (wanted / "notes.txt").touch()
    with pytest.raises(UserError, match=r"hydra\.run\.dir: .*is there already"):
        claim_folder(wanted, "x")
    with pytest.raises(UserError, match="cannot be made|is there already"):
        claim_folder(wanted / "notes.txt" / "inside", "x")


def test_metrics_have_one_row_each_and_fixed_columns(tmp_path):
    run = make_run(tmp_path / "run")
    run.log({"step": 1, "loss": 2.5})
    run.log({"step": 1, "validation_loss": 2.25})
    with (run.folder / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(METRICS)
    assert [(r["step"], r["loss"], r["validation_loss"]) for r in rows] == [
        ("1", "2.5", ""),
        ("1", "", "2.25"),
    ]


def test_config_yaml_is_plain_and_whole(tmp_path):
    run = make_run(tmp_path / "run")
    text = (run.folder / "config.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text) == run.settings
    assert list(yaml.safe_load(text)) == ["name", "model"], "in the order of the settings"
    assert "私の run" in text


def test_the_best_checkpoint_is_opened_else_the_last(tmp_path):
    make_run(tmp_path / "best", steps=[(1, 2.0), (2, 1.5), (3, 1.9)])
    assert load(tmp_path / "best").checkpoint.state.step == 2
    make_run(tmp_path / "last", steps=[(1, None), (2, None)])
    assert load(tmp_path / "last").checkpoint.state.step == 2
    assert "not evaluated" in load(tmp_path / "last").describe()


def test_latest_is_the_newest_that_holds_a_checkpoint(root):
    with pytest.raises(UserError, match="train one first: python train.py"):
        load()
    for number, name in enumerate(["z_old", "a_new", "m_empty"]):
        run = make_run(root / name, steps=[] if "empty" in name else [(1, 2.0)])
        os.utime(run.folder / "config.yaml", (1000 + number, 1000 + number))
    assert load().folder.name == "a_new"


def test_a_moved_folder_opens_from_anywhere(tmp_path, monkeypatch):
    make_run(tmp_path / "here")
    before = load(tmp_path / "here", precision="fp32").generate("ab", max_new_tokens=9)
    shutil.move(tmp_path / "here", tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    run = gpt.load("there", precision="fp32")
    assert run.generate("ab", max_new_tokens=9) == before
    assert run.config["name"] == "私の run"
    assert run.tokenizer.vocab_size == 257


def test_generate_gives_a_text_or_a_list(tmp_path):
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
def test_weights_are_in_the_precision(tmp_path, precision, dtype):
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


def test_a_checkpoint_that_was_changed_is_refused(tmp_path):
    make_run(tmp_path / "run")
    weights = tmp_path / "run/checkpoints/step_00000001/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1  # one bit of one weight: a file that opens
    weights.write_bytes(content)
    with pytest.raises(UserError, match=r"model\.safetensors is missing or was changed"):
        load(tmp_path / "run")


def test_saving_keeps_the_best_and_the_last(tmp_path):
    run = make_run(tmp_path / "run", steps=[(1, 2.0), (2, 1.5), (3, 1.9), (4, None)])
    assert sorted(p.name for p in (run.folder / "checkpoints").iterdir()) == ["step_00000002", "step_00000004"]


def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    config = CONFIG.model_copy(update={"vocab_size": 100})
    run = RunFolder(folder, {"model": config.model_dump()}, ByteConfig().build(lambda: iter(())))
    run.save(GPT(config), State(step=1, tokens=8, elapsed=0.5, validation_loss=None))
    with pytest.raises(UserError, match=r"has 257 tokens, the weights have 100"):
        load(folder)


def test_of_many_that_want_one_folder_one_gets_it(tmp_path):
    folder = claim_folder(tmp_path / "mine", "x")
    tokenizer = ByteConfig().build(lambda: iter(()))
    RunFolder(folder, {"model": {}}, tokenizer)
    with pytest.raises(UserError, match="was taken by another run"):
        RunFolder(folder, {"model": {}}, tokenizer)


def test_a_root_that_cannot_be_made_ends(root):
    root.symlink_to("/nowhere/at/all")
    with pytest.raises(UserError, match="cannot be made"):
        claim_folder(None, "x")
