import pytest
import torch
from torch.nn import functional as F

from gpt.config import UserError
from gpt.model.attention import _flex, sdpa
from gpt.model.mask import Predicate, Where


def masks_used(monkeypatch, run):
    """The `attn_mask is None, is_causal` of each fused call that `run` makes."""
    calls = []
    fused = F.scaled_dot_product_attention

    def spy(*args, **kwargs):
        calls.append((kwargs["attn_mask"] is None, kwargs["is_causal"]))
        return fused(*args, **kwargs)

    monkeypatch.setattr(sdpa.F, "scaled_dot_product_attention", spy)
    run()
    return calls


def test_only_a_whole_unpadded_sequence_is_causal_by_flag(build, monkeypatch):
    model = build(attention="sdpa", n_layer=1)
    tokens = torch.randint(50, (1, 6))
    cache = model.build_cache(9)

    def run():
        model(tokens, cache=cache)
        model(tokens[:, :1], cache=cache)  # one query sees all: no mask at all
        model(tokens[:, :2], cache=cache)  # PyTorch would align its own causal mask to the top left
        model(tokens, where=Where.contiguous(0, 6, "cpu"))

    assert masks_used(monkeypatch, run) == [(True, True), (True, False), (False, False), (False, False)]


def test_another_predicate_than_causality_is_masked(build):
    """A variant that narrows what is visible gets no causal flag, which would ignore it."""
    model, oracle = build(attention="sdpa", n_layer=1), build(attention="reference", n_layer=1)
    near = Predicate(lambda query, key: query.position - key.position < 2)
    for one in (model, oracle):
        attention = one.blocks[0].attention
        attention.visible = attention.visible & near
    tokens = torch.randint(50, (1, 6))
    assert torch.allclose(model(tokens), oracle(tokens), atol=1e-5)
    assert not torch.allclose(model(tokens), build(attention="sdpa", n_layer=1)(tokens), atol=1e-2)


@pytest.mark.parametrize("backend", ["auto", "flash", "math"])
def test_it_says_which_kernel_runs(build, backend):
    attention = build(attention={"name": "sdpa", "backend": backend}).attentions[0].train()
    kernel = "math" if backend == "math" else "flash"
    assert attention.describe(torch.device("cpu"), torch.float32) == f"PyTorch's {kernel} kernel"


def test_training_is_held_to_a_kernel(build):
    tokens = torch.randint(50, (1, 6))
    held, free = (build(attention={"name": "sdpa", "backend": backend}).train()(tokens) for backend in ("math", "auto"))
    assert torch.allclose(held, free, atol=1e-5)
    assert not torch.equal(held, free), "another kernel rounds in another way"


def test_a_kernel_that_the_device_lacks_is_refused(build):
    model = build(attention={"name": "sdpa", "backend": "cudnn"}).train()
    words = "model.attention.backend: cudnn cannot attend in float32 on cpu; take auto or another backend"
    with pytest.raises(UserError) as refused:
        model.attentions[0].describe(torch.device("cpu"), torch.float32)
    assert str(refused.value) == words
    with pytest.raises(UserError, match="cudnn cannot attend"):
        model(torch.zeros(1, 3, dtype=torch.int64))


def test_a_trained_model_is_used_wherever_it_is(build, assert_close):
    """The backend is stored with the run, which is then opened in other numbers, with masks, on other devices."""
    model, free = (build(attention={"name": "sdpa", "backend": backend}) for backend in ("cudnn", "auto"))
    tokens, where = torch.randint(50, (1, 6)), Where.contiguous(0, 6, "cpu")
    assert_close(model(tokens), free(tokens))
    assert_close(model(tokens, where=where), free(tokens, where=where))
    assert model.attentions[0].describe(torch.device("cpu"), torch.float32) == "PyTorch's flash kernel"


@pytest.mark.parametrize(
    "position, packed, flag", [("rope", False, True), ("rope", True, False), ("alibi", False, False)]
)
def test_the_kernel_that_it_says_is_asked_for_what_the_layer_asks(build, monkeypatch, position, packed, flag):
    """A kernel that takes no mask, as flash on CUDA, is refused where there will be one."""
    attention = build(attention="sdpa", position=position).attentions[0]
    told = masks_used(monkeypatch, lambda: attention.describe(torch.device("cpu"), torch.float32, packed))
    assert told == [(flag, flag)]


def test_documents_are_told_to_go_by_flex_attention_where_it_is(build, monkeypatch):
    told = {}
    for backend in ("auto", "math"):
        attention = build(attention={"name": "sdpa", "backend": backend}, d_model=64).attentions[0].train()
        told[backend, False] = attention.describe(torch.device("cpu"), torch.float32, packed=True)
        with monkeypatch.context() as there:
            there.setattr(_flex, "is_there", lambda device: True)
            told[backend, True] = attention.describe(torch.device("cpu"), torch.float32, packed=True)
    assert told["auto", True] == "FlexAttention"
    assert told["auto", False] == "PyTorch's flash kernel"
    assert told["math", True] == told["math", False] == "PyTorch's math kernel"
