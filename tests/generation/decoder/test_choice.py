import pytest
import torch

from gpt.config import RunError, UserError
from gpt.generation.decoder import choice
from gpt.generation.decoder.choice import Decoding, repaid_after
from gpt.generation.decoder.compiled import Compiled
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT


def test_eager_unless_asked_for(build_model):
    decoding = Decoding(build_model())
    assert not isinstance(decoding.decoder(1, False, 10**9), Compiled)
    assert decoding.told == "eager, float32"
    assert decoding.decoder(1, False, 5) is decoding.decoder(1, True, 5), "made once"


def test_auto_compiles_where_that_repays_itself_and_tells_from_when(build_model, traced):
    decoding = Decoding(build_model(), "auto")
    repaid = repaid_after(decoding.model)
    assert not isinstance(decoding.decoder(1, False, repaid - 1), Compiled)
    assert decoding.told == f"eager, float32 (auto: compiling would repay itself after {repaid:,} tokens)"
    assert isinstance(decoding.decoder(1, False, repaid), Compiled)
    assert decoding.told == "compiled, float32"
    assert isinstance(decoding.decoder(1, False, 1), Compiled), "it is there now"
    assert traced == [(1, False)]


def test_auto_lays_nothing_out_for_a_program_that_is_not_there(build_model, traced, monkeypatch):
    """A copy of all weights would be made for nothing."""
    monkeypatch.setattr(choice, "compile_decoder", None)
    Decoding(build_model(), "auto").decoder(1, False, 5)


def test_auto_takes_what_was_compiled_before_at_once(build_model, traced, monkeypatch):
    monkeypatch.setattr(Decoding, "_kept", lambda self, rows, padded: rows == 1)
    decoding = Decoding(build_model(), "auto")
    assert isinstance(decoding.decoder(1, False, 1), Compiled)
    assert not isinstance(decoding.decoder(3, False, 1), Compiled)


def test_that_it_takes_long_is_said_before(build_model, traced, monkeypatch):
    said = []
    for kept in (False, True):
        monkeypatch.setattr(Decoding, "_kept", lambda self, rows, padded, kept=kept: kept)
        decoding = Decoding(build_model(), "on")
        decoding.announce = said.append
        decoding.decoder(1, False, 5)
    assert said == ["compiling, about 5 s; it is kept for all models of this shape"]


@pytest.mark.parametrize("wrong_from", [0, 7])
def test_a_program_is_tried_at_more_lengths_than_one(build_model, traced, monkeypatch, wrong_from):
    """Eight: what was right for the first ones only was compiled for one length."""
    model, calls, right = build_model(), [], Compiled.__call__

    def at_first(self, *arguments):
        calls.append(arguments)
        return right(self, *arguments) * (1 if len(calls) <= wrong_from else 2)

    monkeypatch.setattr(Compiled, "__call__", at_first)
    with pytest.warns(UserWarning, match="its first logits are off by"):
        Decoding(model, "on").decoder(1, False, 5)
    assert len(calls) == 8


def test_the_more_an_eager_step_takes_the_sooner_compiling_pays():
    """2.5 s a layer against 0.4 of 0.3 ms a layer, where there are next to no weights."""
    with torch.device("meta"):
        small, large = (GPT(GPTConfig(vocab_size=9, n_layer=2, n_head=2, d_model=width)) for width in (16, 4096))
    assert repaid_after(small) == pytest.approx(2.5 / 0.4 / 0.0003, rel=0.01)
    assert repaid_after(large) < repaid_after(small) / 10


def test_what_cannot_be_compiled_is_eager_and_strict_refuses_it(build_model):
    decoding = Decoding(build_model(("sliding_window", "rope")), "on")
    assert not isinstance(decoding.decoder(1, False, 5), Compiled)
    assert decoding.told == "eager, float32 (what sliding_window remembers cannot be compiled)"
    with pytest.raises(UserError, match="compile: strict, but what linear remembers cannot be compiled"):
        Decoding(build_model(("linear", "rope")), "strict")


@pytest.mark.parametrize("what", ["raises", "lies"])
def test_a_failure_is_a_warning_and_eager_or_where_strict_an_error(build_model, monkeypatch, what):
    def broken(self, *arguments):
        if what == "raises":
            raise RuntimeError("no C++ compiler\nin the path")
        return torch.full((1, 29), 100.0)

    monkeypatch.setattr(Compiled, "__call__", broken)
    told = "RuntimeError: no C.. compiler" if what == "raises" else "its first logits are off by"
    decoding = Decoding(build_model(), "on")
    with pytest.warns(UserWarning, match=rf"compiling failed, going on without \({told}"):
        assert not isinstance(decoding.decoder(1, False, 5), Compiled)
    assert decoding.told == "eager, float32 (compiling failed)"
    with pytest.raises(RunError, match=rf"compile: strict, but compiling failed \({told}"):
        Decoding(build_model(), "strict").decoder(1, False, 5)


def test_quantize_is_told(build_model):
    decoding = Decoding(build_model(), quantize="int8")
    decoding.decoder(1, False, 5)
    assert decoding.told == "eager, int8"
