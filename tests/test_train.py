"""train.py in this process: which setting reaches which part. What it prints and leaves is tests/test_scripts.py's."""

import importlib.util

import pytest
import torch

from gpt.cli import compose
from gpt.config import ROOT, RunError, UserError
from gpt.model.gpt import GPT
from gpt.run import load
from gpt.training.logger.console import Console
from gpt.training.settings import TrainSettings
from gpt.training.trainer import Rhythm, Trainer

TINY = [
    "tokenizer=byte", "model.n_layer=1", "model.n_head=2", "model.d_model=16", "model.context=32",
    "dataset.years=[1790,1800]", "steps=1", "batch_size=8", "compile=off", "precision=fp32", "device=cpu", "logger=[]",
]  # fmt: skip


@pytest.fixture
def script(monkeypatch):
    """train.py as a module."""
    spec = importlib.util.spec_from_file_location("train_script", ROOT / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    torch.set_flush_denormal(False)  # train.py sets it for the whole process


def run(script, folder, *arguments):
    settings, _ = compose("train", [*TINY, *arguments], TrainSettings)
    script.train(settings, folder)
    return settings


@pytest.mark.parametrize("seed", [5, 6])
def test_the_seed_draws_the_initial_weights(script, tmp_path, seed):
    settings = run(script, tmp_path / "run", f"seed={seed}", "optimizer.lr=1e-12")  # too small to change them
    torch.manual_seed(seed)
    drawn = GPT(settings.model.for_vocabulary(257))
    opened = load(tmp_path / "run", device="cpu", precision="fp32").model
    for one, other in zip(opened.parameters(), drawn.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_a_run_is_called_by_its_name(script, root):
    run(script, None, "name=mine")
    (folder,) = root.iterdir()
    assert folder.name.endswith("_mine")


@pytest.fixture
def kept(script, monkeypatch):
    """The trainers that the script makes."""
    made = []

    class Kept(Trainer):
        def __init__(self, *parts):
            super().__init__(*parts)
            made.append(self)

    monkeypatch.setattr(script, "Trainer", Kept)
    return made


def test_every_setting_reaches_its_part(script, tmp_path, kept):
    run(
        script, tmp_path / "run",
        "keep=3", "seed=7", "clip=0.5", "accumulate=2", "eval_every=3", "save_every=4", "budget=1s",
        "optimizer=adamw", "optimizer.lr=0.25", "packing=documents",
    )  # fmt: skip
    (trainer,) = kept
    assert trainer.rhythm == Rhythm(accumulate=2, eval_every=3, save_every=4)
    assert (trainer.batches.seed, trainer.batches.batch_size, trainer.batches.context) == (7, 8, 32)
    assert trainer.batches.tokens.path.stem == "train"
    split, context, rows = trainer.evaluate.windows.args
    assert (split.path.stem, context, rows) == ("validation", 32, 4)  # as many rows as a micro-step has
    assert trainer.evaluate.byte_lengths.tolist() == [1] * 256 + [0]
    assert trainer.horizon.budget == 1.0
    assert (trainer.run.folder, trainer.run._keep) == (tmp_path / "run", 3)
    guard = trainer.update.guard
    assert (guard.clip, guard.scaler.is_enabled()) == (0.5, False)
    assert {group["initial_lr"] for group in guard.optimizer.param_groups} == {0.25}
    assert trainer.evaluate.model is trainer.update.model
    assert (trainer.update.separator, trainer.evaluate.separator) == (256, 256)


def resume(script, folder, *arguments):
    settings, _ = compose("train", [f"resume={folder}", *arguments], TrainSettings)
    script.train(settings, None)


def test_a_resumed_run_goes_on_with_what_it_was_left_with(script, tmp_path, kept, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    run(script, tmp_path / "run", "optimizer=adamw", "steps=2", "precision=auto")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False})
    told = []
    monkeypatch.setattr(script.Loggers, "start", lambda _, info: told.append(info))
    kept.pop()
    resume(script, tmp_path / "run", "steps=3", "keep=5")
    (trainer,), (info,) = kept, told
    assert trainer.update.precision[:2] == ("bf16", "as it was when the run was left")
    assert {int(memory["step"]) for memory in trainer.update.guard.optimizer.state.values()} == {3}
    assert (trainer.horizon.done, trainer.run.folder, trainer.run._keep) == (2, tmp_path / "run", 5)
    assert (info.summary[0][0], info.resumed_at) == ("resumed", 2)
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == [
        "step_00000002", "step_00000003",
    ]  # fmt: skip


def test_what_failed_to_compile_is_not_compiled_again(script, tmp_path, monkeypatch):
    def fails(*_):
        calls.append(1)
        raise RuntimeError("no compiler")

    calls = []
    monkeypatch.setattr(torch, "compile", lambda model: fails)
    with pytest.warns(UserWarning, match="going on without"):
        run(script, tmp_path / "run", "compile=on")
    resume(script, tmp_path / "run", "steps=2")
    assert calls == [1]


def test_another_runs_tokenizer_is_begun_with_whatever_the_text(script, tmp_path, kept):
    first, other = ["dataset.years=[1790,1800]"], ["dataset.years=[1810,1815]", "tokenizer.unknown=skip"]
    run(script, tmp_path / "first", "tokenizer=char", *first)
    run(script, tmp_path / "own", "tokenizer=char", *other)
    more = [argument for argument in TINY if not argument.startswith(("tokenizer", "dataset"))]
    settings, _ = compose("train", [*more, *other, f"init={tmp_path / 'first'}"], TrainSettings)
    script.train(settings, tmp_path / "second")
    characters = {name: load(tmp_path / name).tokenizer.characters for name in ("first", "own", "second")}
    assert characters["second"] == characters["first"] != characters["own"]


def test_a_text_that_has_changed_is_not_gone_on_with(script, tmp_path):
    text = tmp_path / "mine.txt"
    text.write_text("To be, or not to be, that is the question. " * 100)
    own = [argument for argument in TINY if not argument.startswith("dataset")]
    settings, _ = compose("train", [*own, "dataset=text", f"dataset.path={text}"], TrainSettings)
    script.train(settings, tmp_path / "run")
    text.write_text("To be, or not to be, that is the question! " * 100)
    with pytest.raises(UserError, match=r"resume: the text, .*has changed since"):
        resume(script, tmp_path / "run", "steps=2")


def test_documents_that_cannot_be_told_apart_are_refused_before_anything_is_made(script, tmp_path):
    (tmp_path / "mine.txt").write_text("To be, or not to be, that is the question. " * 100)
    own = [argument for argument in TINY if not argument.startswith(("dataset", "tokenizer"))]
    text = ["dataset=text", f"dataset.path={tmp_path / 'mine.txt'}", "tokenizer=char", "packing=documents"]
    settings, _ = compose("train", [*own, *text], TrainSettings)
    with pytest.raises(UserError, match="packing: documents are told apart by an end-of-text"):
        script.train(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_that_cannot_fit_is_refused_before_anything_is_made(script, tmp_path):
    with pytest.raises(UserError, match=r"model: weights, gradients and optimizer take .* GB"):
        run(script, tmp_path / "run", "model.n_layer=1000", "model.d_model=100000")
    assert not (tmp_path / "run").exists()


def test_the_device_is_prepared(script, tmp_path):
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush denormals")
    run(script, tmp_path / "run")
    assert (torch.tensor([2.0**-100]) * 2.0**-30).item() == 0.0


def test_loggers_end_also_where_the_training_fails(script, tmp_path, monkeypatch):
    ended = []

    def fail(_):
        raise RunError("nothing is finite")

    monkeypatch.setattr(script.Trainer, "fit", fail)
    monkeypatch.setattr(Console, "finish", lambda console: ended.append(console))
    with pytest.raises(RunError, match="nothing is finite"):
        run(script, tmp_path / "run", "logger=[console]")
    assert len(ended) == 1


@pytest.mark.parametrize(
    "wrong, told",
    [("model.head_dim=7", "odd"), ("model.attention.backend=cudnn", "cudnn cannot attend in float32 on cpu")],
)
def test_a_model_that_cannot_be_trained_is_refused_before_data_is_prepared(script, tmp_path, monkeypatch, wrong, told):
    prepared = []
    monkeypatch.setattr(script.TrainSettings, "prepare_data", lambda *_: prepared.append(1))
    with pytest.raises(UserError, match=told):
        run(script, tmp_path / "run", wrong)
    assert not prepared
    assert not (tmp_path / "run").exists()
