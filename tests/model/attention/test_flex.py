"""What is given to FlexAttention. Its kernels are for CUDA; here it runs written out, and only forward."""

import pytest
import torch

from gpt.model.attention import _flex, sdpa
from gpt.model.mask import Where

CASES = [
    {"name": "sdpa"},
    {"name": "sliding_window", "window": 70, "sinks": 3},
    {"name": "sparse", "window": 20, "sinks": 1, "stride": 50},
    {"name": "sparse", "window": 70, "sinks": 2, "stride": 9},
]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("attention", CASES, ids=lambda v: "-".join(map(str, v.values())))
@pytest.mark.parametrize("packed", [False, True])
def test_flex_attention_is_given_what_is_seen(build, monkeypatch, attention, packed):
    model = build(attention=attention, position="rope", d_model=64, n_kv_head=2, n_layer=1)
    tokens = torch.randint(1, 50, (2, 150))
    tokens[0, [30, 31, 90]] = tokens[1, 10] = 0
    where = Where.packed(tokens, separator=0) if packed else None
    monkeypatch.setattr(sdpa, "SHORT", 149)
    _flex.of_plain.cache_clear()
    with torch.no_grad():
        elsewhere = model(tokens, where=where)
        calls = []
        monkeypatch.setattr(_flex, "is_there", lambda device: True)
        fused = _flex.fused
        monkeypatch.setattr(_flex, "fused", lambda *args: calls.append(args) or fused(*args))
        here = model(tokens, where=where)
    assert len(calls) == (packed or attention["name"] != "sdpa"), "without documents sdpa needs no mask"
    assert (here - elsewhere).abs().max() <= 1e-5 * elsewhere.abs().max()


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("attention", CASES[1:3], ids=lambda v: v["name"])
def test_the_mask_of_a_plain_text_is_made_once_for_its_length(build, monkeypatch, attention):
    model = build(attention=attention, position="rope", d_model=64, n_layer=2, context=200)
    monkeypatch.setattr(_flex, "is_there", lambda device: True)
    _flex.of_plain.cache_clear()
    made, block_mask = [], _flex.block_mask
    monkeypatch.setattr(_flex, "block_mask", lambda *args: made.append(args) or block_mask(*args))
    tokens = torch.randint(1, 50, (1, 150))
    with torch.inference_mode():  # as an evaluation does before the training
        model(tokens)
    with torch.no_grad():
        model(tokens)
    assert len(made) == 1
    assert not any(t.is_inference() for t in made[0][1]), "autograd keeps nothing that is"
    with torch.no_grad():
        model(tokens[:, :140])
        assert len(made) == 2
        for _ in range(2):
            model(tokens, where=Where.packed(tokens, separator=0))
        assert len(made) == 4, "documents are elsewhere in each call: once for its layers"


def test_a_padded_prompt_has_no_kernel_compiled_for_it(build, monkeypatch):
    model = build(attention="sdpa", d_model=64, n_layer=1, context=16)
    monkeypatch.setattr(_flex, "is_there", lambda device: True)
    monkeypatch.setattr(_flex, "fused", lambda *_: pytest.fail("FlexAttention was called"))
    position = torch.tensor([[-1, -1, 0, 1], [0, 1, 2, 3]])
    where = Where(position, torch.zeros_like(position))
    with torch.inference_mode():
        model(torch.ones(2, 4, dtype=torch.int64), where=where, cache=model.build_cache(16))


def test_in_compiled_code_it_is_compiled_with_the_rest(monkeypatch):
    monkeypatch.setattr(_flex, "compiled", lambda: "compiled")
    assert _flex.kernels("cuda") == "compiled"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert _flex.kernels("cuda") == (_flex.flex_attention, _flex.create_block_mask)


REFUSED = [{"position": "alibi"}, {"d_model": 32}, {"dropout": 0.5}]
"""A bias, heads 8 wide, and in training dropout."""


@pytest.mark.parametrize("settings", REFUSED, ids=lambda v: next(iter(v)))
@pytest.mark.parametrize("attention", CASES, ids=lambda v: "-".join(map(str, v.values())))
def test_what_it_cannot_do_goes_another_way(build, monkeypatch, attention, settings):
    model = build(**{"attention": attention, "d_model": 64, "n_kv_head": 2, "context": 150, **settings}).train()
    tokens = torch.randint(1, 50, (2, 150))
    tokens[0, [30, 31, 90]] = tokens[1, 10] = 0
    where, given = Where.packed(tokens, separator=0), []
    for there in (False, True):
        monkeypatch.setattr(_flex, "is_there", lambda device, there=there: there)
        monkeypatch.setattr(_flex, "fused", lambda *_: pytest.fail("FlexAttention was called"))
        torch.manual_seed(0)
        given.append(model(tokens, where=where))
    assert torch.equal(*given)


def test_it_is_on_no_cpu():
    assert not _flex.is_there(torch.device("cpu"))


def test_blocks_of_keys_that_no_query_sees_are_not_visited(build):
    where = Where.contiguous(0, 1024, "cpu")
    window = build(attention={"name": "sliding_window", "window": 100, "sinks": 4}).attentions[0]
    mask = _flex.block_mask(window.visible, where, where)
    # of 8 blocks of 128 keys: its own, the one before, and the sinks'
    assert mask.to_dense()[0, 0].sum(-1).tolist() == [1, 2, 3, 3, 3, 3, 3, 3]
