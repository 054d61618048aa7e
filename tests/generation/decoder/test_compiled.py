"""One graph for every length; traced without generating code, but for one model."""

import pytest
import torch
from torch._dynamo.utils import counters

from gpt.generation.decoder import Decoder
from gpt.generation.decoder.choice import TOLERANCE
from gpt.generation.decoder.compiled import Compiled
from gpt.generation.decoder.prepared import Rows, linear, prepared
from gpt.generation.generate import generate
from gpt.generation.settings import GenerationSettings

PROMPTS = [[3, 1, 4, 1, 5], [7]]
POSITIONS = ["none", "learned", "sinusoidal", "rope", "alibi"]


@pytest.fixture(autouse=True)
def counted():
    torch.compiler.reset()
    counters.clear()


def graphs() -> int:
    return counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("attention", ["sdpa", "reference"])
def test_it_is_the_model_alone_and_padded_with_one_graph_for_each(build_model, attention, position, teacher_forced):
    model = build_model((attention, position))
    decoder = Compiled(prepared(model, linear), backend="eager")
    for number, prompts in enumerate((PROMPTS, PROMPTS[:1]), 1):
        ours, truth = teacher_forced(model, model, decoder, prompts, new=11 if number == 2 else 9)
        assert (ours - truth).abs().max() <= TOLERANCE["fp32"] * truth.abs().max()
        assert graphs() == number


def test_windows_that_slide_and_capacities_that_differ_are_one_graph(build_model):
    model = build_model()
    decoder = Compiled(prepared(model, Rows), backend="eager")
    for new in (40, 5, 9):  # a context of 16 slides
        settings = GenerationSettings(max_new_tokens=new, temperature=0)
        ours, truth = (
            [token.tolist() for token in generate(model, PROMPTS[:1], settings, 29, one)]
            for one in (decoder, Decoder(model))
        )
        assert ours == truth
    assert graphs() == 1


def test_two_models_do_not_take_each_others_graphs(build_model, teacher_forced):
    first, second = build_model(), build_model(("sdpa", "learned"))
    for model in (first, second):
        ours, truth = teacher_forced(model, model, Compiled(prepared(model, linear), backend="eager"), PROMPTS)
        assert (ours - truth).abs().max() <= TOLERANCE["fp32"] * truth.abs().max()


@pytest.mark.parametrize("layout", [Rows])
def test_with_generated_code(build_model, layout, teacher_forced):
    model = build_model()
    ours, truth = teacher_forced(model, model, Compiled(prepared(model, layout)), PROMPTS[:1], new=11)
    assert (ours - truth).abs().max() <= TOLERANCE["fp32"] * truth.abs().max()
