"""The work that is measured, on every variant."""

import pytest
import torch

from gpt.config import variant_names
from gpt.insight.cost.work import Inputs, decoding, filled, place_of, training
from gpt.insight.variants import PACKAGE, configured
from gpt.model.config import GPTConfig

CPU = torch.device("cpu")
HEADS, WIDTH, WINDOW, SINKS, STRIDE, LENGTH = 4, 8, 16, 2, 8, 100


def layer(name: str, n_kv_head: int = HEADS):
    wanted = {"window": WINDOW, "sinks": SINKS, "stride": STRIDE}
    sizes = {"n_head": HEADS, "n_kv_head": n_kv_head, "d_model": HEADS * WIDTH, "context": LENGTH}
    shape = GPTConfig.model_validate({**sizes, "attention": configured(name, wanted)})
    return shape.attention.build(shape, 0)


@pytest.fixture(params=variant_names(PACKAGE))
def name(request) -> str:
    return request.param


def test_training_computes_a_gradient_of_each_input_and_keeps_none(name, monkeypatch):
    attention = layer(name)
    inputs = Inputs.draw(attention, LENGTH, torch.float32, CPU)
    asked = []
    monkeypatch.setattr(torch.autograd, "grad", lambda out, of, gradient: asked.append((out.shape, len(of))))
    assert training(attention, inputs)() == 1
    assert asked == [((1, HEADS, LENGTH, WIDTH), 3)]
    assert inputs.query.grad is None


def test_decoding_is_the_last_token_of_the_text_each_time_anew(name, monkeypatch):
    attention = layer(name)
    inputs = Inputs.draw(attention, LENGTH, torch.float32, CPU)
    whole = attention.attend(*inputs[:3], place_of(0, LENGTH, CPU), None)[:, :, -1:]
    work = decoding(attention, inputs, filled(attention, inputs.at(0, LENGTH - 1), LENGTH))
    given, attend = [], attention.attend
    monkeypatch.setattr(attention, "attend", lambda *args: given.append(attend(*args)))
    assert [work() for _ in range(3)] == [1, 1, 1]
    for mixed in given:
        assert torch.allclose(mixed, whole, atol=1e-5)


@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
@pytest.mark.parametrize("dtype, size", [(torch.float32, 4), (torch.bfloat16, 2)])
def test_bytes_of_keys_and_values_by_hand(n_kv_head, dtype, size):
    """Two numbers for each token, key/value head and place in it: 100 · 2 · 4 · 8 · 4 bytes for MHA in fp32."""
    attention = layer("sdpa", n_kv_head)
    memory = filled(attention, Inputs.draw(attention, LENGTH, dtype, CPU), LENGTH)
    assert memory.nbytes() == LENGTH * 2 * n_kv_head * WIDTH * size


def test_bytes_of_the_other_memories_by_hand():
    """A slot has a key and a value for each head, a position and a document; one slot is idle.

    Sparse: a window of 16, 2 sinks, and of the first 100 - 16 tokens the columns 7, 15, ..., 79.
    """
    slot = 2 * HEADS * WIDTH * 4 + 2 * 8
    slots = {"sliding_window": WINDOW + SINKS + 1, "sparse": WINDOW + SINKS + 10 + 1}
    for name, count in slots.items():
        attention = layer(name)
        assert filled(attention, Inputs.draw(attention, LENGTH, torch.float32, CPU), LENGTH).nbytes() == count * slot
    attention = layer("linear")
    memory = filled(attention, Inputs.draw(attention, LENGTH, torch.float32, CPU), LENGTH)
    assert memory.nbytes() == HEADS * WIDTH * (WIDTH + 1) * 4 + 8
