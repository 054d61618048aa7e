"""One program for every length; exported without generating code, but for one model."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from gpt.generation.decoder import Decoder, compiled
from gpt.generation.decoder.choice import TOLERANCE
from gpt.generation.decoder.compiled import Compiled, fingerprint, kept_at, supports
from gpt.generation.decoder.prepared import Tiles, linear, prepared
from gpt.generation.generate import generate
from gpt.generation.settings import GenerationSettings

PROMPTS = [[3, 1, 4, 1, 5], [7]]
POSITIONS = ["none", "learned", "sinusoidal", "rope", "alibi"]


def assert_near(ours, truth):
    assert (ours - truth).abs().max() <= TOLERANCE["fp32"] * truth.abs().max()


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("attention", ["sdpa", "reference"])
@pytest.mark.parametrize("prompts, new", [(PROMPTS, 9), (PROMPTS[:1], 11), (PROMPTS[1:], 15)])
def test_it_is_the_model_alone_and_padded_up_to_the_context(
    build_model, attention, position, teacher_forced, traced, prompts, new
):
    model = build_model((attention, position))
    ours, truth = teacher_forced(model, model, Compiled(prepared(model, linear), "linear"), prompts, new=new)
    assert_near(ours, truth)
    assert len(traced) == 1, "one program for all lengths"


def test_windows_that_slide_and_texts_of_any_length_are_one_program(build_model, traced):
    model = build_model()
    decoder = Compiled(prepared(model, Tiles), "Tiles")
    for new in (40, 5, 9):  # a context of 16 slides
        settings = GenerationSettings(max_new_tokens=new, temperature=0)
        ours, truth = (
            [token.tolist() for token in generate(model, PROMPTS[:1], settings, 29, one)]
            for one in (decoder, Decoder(model))
        )
        assert ours == truth
    assert traced == [(1, False)]


def test_generated_code_is_kept_for_every_model_of_a_shape(build_model, teacher_forced, monkeypatch, tmp_path):
    """A second model, of other weights, takes the program of the first; a broken file is written anew."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    model, other = build_model(n_layer=1), build_model(n_layer=1)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    decoder = Compiled(prepared(model, Tiles), "Tiles")
    assert not kept_at(model, "Tiles", 1, False).exists()
    assert_near(*teacher_forced(model, model, decoder, PROMPTS[1:], new=15))
    assert kept_at(model, "Tiles", 1, False).exists()
    assert not kept_at(model, "Tiles", 2, False).exists()
    with monkeypatch.context() as context:
        context.setattr(compiled, "export", None)
        assert_near(*teacher_forced(other, other, Compiled(prepared(other, Tiles), "Tiles"), PROMPTS[:1], new=11))
    (kept,) = (tmp_path / "decoders").iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])
    monkeypatch.setattr(compiled, "export", lambda *arguments: SimpleNamespace(told="made anew"))
    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", lambda program, **where: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Compiled(prepared(other, Tiles), "Tiles").load(1, padded=False)


def test_what_a_program_depends_on_is_in_its_name(build_model, monkeypatch):
    """Not the numbers of the weights, but all else."""

    def name(model, layout="Tiles", rows=1, padded=False):
        return fingerprint(model, layout, rows, padded)

    model = build_model()
    same = build_model()
    torch.nn.init.zeros_(same.norm.weight)
    assert name(model) == name(same)
    others = [
        name(model, rows=2),
        name(model, padded=True),
        name(model, "int8_tiles"),
        name(build_model(context=17)),
        name(build_model().bfloat16()),
    ]
    for changed in ("sources", "processor"):
        with monkeypatch.context() as context:
            context.setattr(compiled, changed, lambda: "another")
            others.append(name(model))
    assert len({name(model), *others}) == 8


def test_where_code_is_kept_is_not_settled_by_an_import():
    """PyTorch's compiler would take its temporary folder for good, before the user's is named."""
    code = "import gpt.generation.text, sys; sys.exit('torch._inductor' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_window_of_two_tokens_or_what_forgets_is_not_compiled(build_model):
    assert [supports(build_model(context=context)) for context in (2, 3)] == [False, True]
    assert not supports(build_model(("sliding_window", "rope")))
