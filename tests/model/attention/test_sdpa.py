import torch
from torch.nn import functional as F

from gpt.model.attention import sdpa
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
