import pytest
import torch

from gpt.model.attention import _unfused, sdpa
from gpt.model.attention.reference import scaled_dot_product_attention
from gpt.model.mask import build_causal_mask


def heads(n_head, n_kv_head, length=7, width=4):
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(2, n, length, width, generator=draw).requires_grad_() for n in (n_head, n_kv_head, n_kv_head)]


@pytest.mark.parametrize("n_kv_head", [1, 2, 6])
def test_it_is_causal_attention_and_so_are_its_gradients(n_kv_head, assert_close):
    query, key, value = heads(6, n_kv_head)
    repeated = [one.repeat_interleave(6 // n_kv_head, dim=1) for one in (key, value)]
    truth = scaled_dot_product_attention(query, *repeated, build_causal_mask(7))
    mixed = _unfused.attend_causally(query, key, value)
    assert_close(mixed, truth)
    weights = torch.randn(truth.shape, generator=torch.Generator().manual_seed(1))
    wanted = torch.autograd.grad((truth * weights).sum(), (query, key, value))
    for gradient, true in zip(torch.autograd.grad((mixed * weights).sum(), (query, key, value)), wanted, strict=True):
        assert_close(gradient, true)


def test_dropped_weights_are_zero_and_the_others_larger():
    query, key, value = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), torch.tensor([[[[1.0], [10.0]]]])
    torch.manual_seed(0)
    found = {tuple(_unfused.attend_causally(query, key, value, 0.5).flatten().tolist()) for _ in range(100)}
    # The first query has one weight of 1, the second two of 0.5; those that stay are doubled.
    assert found == {(first, second) for first in (0.0, 2.0) for second in (0.0, 1.0, 10.0, 11.0)}


def test_it_pays_in_a_training_in_bf16_only():
    text = torch.empty(1, 1, 512, 8, dtype=torch.bfloat16)
    assert _unfused.pays(text)
    assert not _unfused.pays(text.float())
    assert not _unfused.pays(torch.empty(1, 1, 513, 8, dtype=torch.bfloat16))
    with torch.no_grad():
        assert not _unfused.pays(text)


def test_training_in_bf16_goes_this_way_and_what_is_said_of_it_is_true(build, monkeypatch):
    calls = []
    unfused = _unfused.attend_causally
    monkeypatch.setattr(sdpa._unfused, "attend_causally", lambda *args: calls.append(1) or unfused(*args))
    tokens = torch.randint(50, (2, 6))
    model, held = (build(attention={"name": "sdpa", "backend": b}, n_layer=2).train() for b in ("auto", "flash"))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.allclose(model(tokens), held(tokens), atol=0.05)
        assert len(calls) == 2
        with torch.no_grad():
            model.eval()(tokens)
    assert len(calls) == 2
    said = [m.train().attentions[0].describe(torch.device("cpu"), torch.bfloat16) for m in (model, held)]
    assert said == ["matrix products and a softmax", "PyTorch's flash kernel"]
    assert model.eval().attentions[0].describe(torch.device("cpu"), torch.bfloat16) == "PyTorch's flash kernel"
