"""The whole of it, on a training that is done in a moment."""

import re

import pytest
import torch

from gpt.config import ROOT, UserError
from gpt.device import choose_precision
from gpt.insight.plan import page, timing
from gpt.insight.plan import plan as module
from gpt.insight.plan.memory import Memory
from gpt.insight.plan.plan import divided, plan
from gpt.insight.plan.text import Planned, planned, vocabulary
from gpt.training import update


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """One update is measured."""
    monkeypatch.setattr(timing, "SECONDS", 0.0)


def test_one_screen_and_no_run(settings, capsys):
    before = sorted((ROOT / "runs").glob("*"))
    told = plan(settings("steps=10", "eval_every=5"), None)
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    assert len(lines) <= 40
    assert re.search(r"^  all +[\d,]+ +100.0%$", text, re.M)
    assert "10 updates of 2 x 32 tokens, 640 tokens" in text
    assert "off (auto: only from 150 s on)" in text
    assert told["steps"] == "10"
    assert sorted((ROOT / "runs").glob("*")) == before


def test_an_update_is_measured_as_it_would_be_trained(settings, capsys, monkeypatch):
    """Compiled, where compiling is pretended: it makes another module of the model."""
    called = []

    def compiled(model, mode, *_):
        called.append(mode)
        return lambda *args: called.append("compiled") or model(*args), "on"

    monkeypatch.setattr(update, "compile_forward", compiled)
    plan(settings("compile=on"), None)
    assert called == ["on", "compiled", "compiled"]  # an update that is not counted, and one that is
    assert "compile       on; that took 0 s, beside the time below" in capsys.readouterr().out


def test_a_budget_is_told_in_steps(settings, capsys):
    told = plan(settings("budget=5min"), None)
    assert told["seconds"] == "300"
    assert int(told["steps"]) > 100


def test_what_does_not_fit_is_not_tried(settings, capsys, monkeypatch):
    monkeypatch.setattr(module, "free_bytes", lambda device: 1)
    monkeypatch.setattr(module, "measured", lambda *_: pytest.fail("it takes memory"))
    assert "steps" not in plan(settings(), None)
    assert "not measured" in capsys.readouterr().out


def test_parts_that_do_not_fit_are_not_said_to(settings, capsys, monkeypatch):
    monkeypatch.setattr(module, "free_bytes", lambda device: 1)
    monkeypatch.setattr(module, "training_memory", lambda *_: Memory(0, 0, 0, 0, 0, 9))
    plan(settings("accumulate=auto"), None)
    out = " ".join(capsys.readouterr().out.split())
    assert "an update in 2 parts at the peak" in out
    assert "are free; take a smaller model" in out
    page.show_too_much(Memory(0, 0, 0, 0, 0, 9), 1, divisible=True)
    assert "take more of accumulate" in " ".join(capsys.readouterr().out.split())


def test_few_of_many_parts_are_tried(settings, monkeypatch):
    tried = []

    def memory(_settings, _vocabulary, _precision, number):
        tried.append(number)
        return Memory(0, 0, 0, 0, 0, 1024 // number)

    monkeypatch.setattr(module, "training_memory", memory)
    precision = choose_precision("fp32", torch.device("cpu"))
    for free, parts, most in ((None, 1, 1), (1024, 1, 1), (1023, 2, 5), (100, 16, 5), (2, 512, 5), (1, 512, 5)):
        tried.clear()
        assert divided(settings("accumulate=auto", "batch_size=512"), 257, precision, free)[0] == parts
        assert len(tried) <= most
    assert divided(settings("accumulate=auto", "batch_size=1"), 257, precision, 1)[0] == 1


def test_auto_takes_as_few_parts_as_fit(settings):
    precision = choose_precision("fp32", torch.device("cpu"))
    chosen = settings("accumulate=auto", "batch_size=4")
    one, whole = divided(chosen, 257, precision, None)
    assert one == 1
    assert divided(chosen, 257, precision, whole.resident - 1)[0] == 2
    assert divided(chosen, 257, precision, 1)[0] == 4


def test_a_large_text_is_not_read(settings, monkeypatch, tmp_path):
    monkeypatch.setattr("gpt.insight.plan.text.LARGE", 1)
    found = planned(settings("tokenizer=bpe", "tokenizer.vocab_size=300"), None, tmp_path)
    assert (found.vocabulary, found.data) == (300, None)
    assert list(tmp_path.iterdir()) == []
    assert len(found.batches(settings()).batch(0)[0]) == 2
    assert Planned(257, None, "").batches(settings()).tokens_per_step == 64


def test_a_vocabulary_that_nothing_tells_is_one_line(settings):
    assert vocabulary(settings("tokenizer=byte")) == 257
    assert vocabulary(settings("tokenizer=char", "model.vocab_size=70")) == 70
    with pytest.raises(UserError, match=r"^tokenizer: char learns its vocabulary .* run python .*prepare.py"):
        vocabulary(settings("tokenizer=char"))
