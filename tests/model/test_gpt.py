import math

import pytest
import torch

from gpt.model import gpt
from gpt.model.gpt import GPT, token_losses
from gpt.model.mask import Where


def test_logits_and_losses_have_their_shapes(build):
    model = build()
    tokens = torch.randint(50, (2, 5))
    assert model(tokens).shape == (2, 5, 50)
    losses = model(tokens, tokens)
    assert losses.shape == (2, 5)
    assert losses.dtype == torch.float32


def test_losses_by_hand():
    logits = torch.tensor([[[0.0, math.log(3.0)], [0.0, 0.0]]])
    losses = token_losses(logits, torch.tensor([[1, -100]]))
    assert losses.tolist() == [[pytest.approx(math.log(4 / 3)), 0.0]]


def test_losses_of_bf16_logits_are_in_fp32():
    losses = token_losses(torch.tensor([[[0.0, 6.0]]], dtype=torch.bfloat16), torch.tensor([[1]]))
    assert losses.dtype == torch.float32
    assert losses.item() == pytest.approx(math.log1p(math.exp(-6)), rel=1e-4)


def test_losses_and_gradients_are_the_same_in_parts(build, monkeypatch):
    model, tokens = build(), torch.randint(50, (2, 8))
    targets = tokens.roll(-1, 1)
    targets[0, 3] = -100
    whole = model(tokens, targets)
    wanted = torch.autograd.grad(whole.sum(), list(model.parameters()))
    monkeypatch.setattr(gpt, "LOGITS", 3 * 50)
    sizes, head = [], model.logits
    monkeypatch.setattr(model, "logits", lambda hidden: sizes.append(hidden.size(0)) or head(hidden))
    losses = model(tokens, targets)
    assert sizes == [3, 3, 3, 3, 3, 1]  # of 16 tokens
    assert torch.allclose(losses, whole, atol=1e-6)
    for gradient, true in zip(torch.autograd.grad(losses.sum(), list(model.parameters())), wanted, strict=True):
        assert torch.allclose(gradient, true, atol=1e-5)
    assert len(sizes) == 12, "computed again in the backward"


def test_the_head_reads_normed_features(build):
    hidden = build().hidden(torch.randint(50, (1, 5)))
    assert torch.allclose(hidden.square().mean(-1), torch.ones(1, 5), atol=1e-3)


def test_embeddings_have_dropout(build):
    model = build(dropout=0.5, position="learned").train()
    tokens = torch.randint(50, (1, 16))
    place = model._place(tokens, None, None)
    plain = model.embedding(tokens) + model.position.embed(place.position)
    embedded = model._embed(tokens, place)
    kept = embedded != 0
    assert 0.3 < kept.float().mean() < 0.7
    assert torch.allclose(embedded[kept], 2 * plain[kept])  # divided by 1 - 0.5


def test_a_tied_head_is_one_table(build):
    tied, untied = build(tied=True), build(tied=False)
    assert untied.count_parameters() - tied.count_parameters() == 50 * 32
    assert [n for n in tied.state_dict() if "head" in n or "embedding" in n] == ["embedding.weight"]
    tokens = torch.randint(50, (1, 4))
    with torch.no_grad():
        tied.embedding.weight[7] = 0
    assert (tied(tokens)[..., 7] == 0).all(), "the head reads the same table"


def test_the_initialisation_is_as_its_table_says(build):
    model = build(
        n_layer=2,
        d_model=256,
        n_head=4,
        init_std=0.02,
        bias=True,
        norm="layernorm",
        tied=False,
        position="learned",
    )
    deviations = {
        "embedding.weight": 0.02,
        "position.table.weight": 0.02,
        "head.weight": 0.02,
        "blocks.1.attention.qkv.weight": 0.02,
        "blocks.1.attention.output.weight": 0.01,  # 0.02 / sqrt(2 · 2)
        "blocks.0.feedforward.output.weight": 0.01,
    }
    parameters = dict(model.named_parameters())
    for name, std in deviations.items():
        assert parameters[name].std().item() == pytest.approx(std, rel=0.05), name
        assert abs(parameters[name].mean().item()) < std / 10
    assert all((p == 1).all() for name, p in parameters.items() if name.endswith("norm.weight"))
    assert all((p == 0).all() for name, p in parameters.items() if name.endswith("bias"))


def test_blocks_that_begin_as_the_identity(build):
    model = build(output_init="zeros", norm_gain=False)
    assert not any(p.any() for name, p in model.named_parameters() if name.endswith(".output.weight"))
    tokens = torch.arange(6)[None]
    assert torch.equal(model.hidden(tokens), model.norm(model.embedding(tokens)))


def test_capped_logits(build):
    plain, capped = build(tied=False), build(tied=False, logit_softcap=2.0)
    hidden = torch.randn(1, 3, 32) * 100
    logits = capped.logits(hidden)
    assert torch.allclose(logits, 2 * torch.tanh(plain.logits(hidden) / 2))
    assert logits.abs().max() <= 2


def test_the_same_seed_gives_the_same_weights(build):
    one, same, other = build(seed=1), build(seed=1), build(seed=2)
    assert torch.equal(one.embedding.weight, same.embedding.weight)
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_one_batch_is_learned_by_heart(build):
    model = build(init_std=0.05).train()
    tokens = torch.randint(50, (2, 9))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(150):
        loss = model(tokens[:, :-1], tokens[:, 1:]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.01


@pytest.mark.parametrize("position", ["none", "rope", "alibi", "sinusoidal"])
def test_the_context_is_no_wall_where_positions_have_no_end(build, position):
    logits = build(position=position)(torch.zeros(1, 17, dtype=torch.int64))
    assert logits.shape == (1, 17, 50)


def test_a_vocabulary_is_needed():
    from gpt.model.config import GPTConfig

    with pytest.raises(ValueError, match="vocab_size"):
        GPT(GPTConfig())


def test_flops_by_hand(build):
    model = build(n_layer=1, n_head=1, d_model=2, feedforward={"name": "relu2", "hidden": 3}, position="none",
                  vocab_size=5, context=4, qk_norm=False)  # fmt: skip
    # qkv 2·6, output 2·2, feedforward 2·3 twice, three norms of 2, head 2·5
    assert model.count_parameters() == 12 + 4 + 12 + 6 + 10
    assert model.flops_per_token() == 6 * 44 + 12 * 1 * 2 * 4
    model.blocks[0].requires_grad_(False)  # of its 28 and two norms' 4, and nothing of the table and the last norm
    assert model.flops_per_token() == 4 * 32 + 6 * 12 + 12 * 1 * 2 * 4
    untied = build(n_layer=1, n_head=1, d_model=2, feedforward={"name": "relu2", "hidden": 3}, position="learned",
                   vocab_size=5, context=4, qk_norm=False, tied=False)  # fmt: skip
    assert untied.flops_per_token() == 6 * 44 + 12 * 1 * 2 * 4, "tables that are looked up take no product"


@pytest.mark.parametrize(
    "attention, keys",
    [
        ({"name": "sdpa"}, 400),
        ({"name": "sliding_window", "window": 60, "sinks": 4}, 64),
        ({"name": "sliding_window", "window": 500, "sinks": 4}, 400),
        ({"name": "sliding_window", "window": 60, "sinks": 4, "layers": "SL"}, 64 + 400),
        ({"name": "sparse", "window": 100, "sinks": 0, "stride": 50}, 100 + 6),
        ({"name": "linear"}, 8),  # a state of 8 rows
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_flops_count_the_keys_that_are_looked_at(build, attention, keys):
    layers = 2 if "layers" in attention else 1
    model = build(attention=attention, n_layer=layers, context=400)
    assert model.flops_per_token() == 6 * model.count_parameters() + 12 * 4 * 8 * keys


def test_scaled_embeddings(build):
    plain, scaled = build(), build(scale_embedding=True)
    tokens = torch.randint(50, (1, 3))
    place = plain._place(tokens, None, None)
    assert torch.allclose(scaled._embed(tokens, place), plain._embed(tokens, place) * math.sqrt(32))
    learned = build(scale_embedding=True, position="learned")
    positions = learned.position.embed(place.position)
    assert torch.allclose(learned._embed(tokens, place), learned.embedding(tokens) * math.sqrt(32) + positions)


@pytest.mark.parametrize("attention", ["sdpa", "sliding_window", "linear"])
def test_a_call_that_a_cache_refuses_leaves_no_trace_in_it(build, attention):
    model, tokens = build(attention=attention), torch.randint(50, (1, 9))
    cache = model.build_cache(12)
    with torch.no_grad():
        model(tokens[:, :5], cache=cache)
        with pytest.raises(ValueError, match="where must be given in every call"):
            model(tokens[:, :3], where=Where.contiguous(5, 3, "cpu"), cache=cache)
        assert torch.allclose(model(tokens[:, 5:], cache=cache), model(tokens)[:, 5:], atol=1e-5)
