import pytest
import torch

from gpt.config import variant_class, variant_names
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.optimizer import parameter_groups
from gpt.training.optimizer.adamw import AdamwConfig

PACKAGE = "gpt.training.optimizer"


def model(**settings):
    sizes = {"vocab_size": 11, "context": 8, "n_layer": 2, "n_head": 2, "d_model": 8}
    return GPT(GPTConfig(**{**sizes, **settings}))


@pytest.mark.parametrize("tied", [True, False])
def test_every_parameter_is_in_one_group(tied):
    built = model(tied=tied, bias=True, norm="layernorm", position={"name": "learned"})
    groups = parameter_groups(built)
    names = [name for group in groups.values() for name in group]
    assert sorted(names) == sorted(name for name, _ in built.named_parameters())
    tables = {"embedding.weight", "position.table.weight"} | (set() if tied else {"head.weight"})
    assert set(groups["embeddings"]) == tables
    assert all(p.ndim == 2 for p in groups["matrices"].values())
    assert "blocks.1.attention.qkv.weight" in groups["matrices"]
    assert all(p.ndim == 1 for p in groups["vectors"].values())


@pytest.mark.parametrize("name", variant_names(PACKAGE))
def test_every_optimizer_steps_all_parameters_and_keeps_its_peak(name):
    built = model(tied=False, position={"name": "learned"})
    optimizer = variant_class(PACKAGE, name)(name=name).build(built)
    ids = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(ids) == sorted(id(p) for p in built.parameters())
    assert all(group["initial_lr"] > 0 for group in optimizer.param_groups)


def test_gains_and_biases_do_not_decay():
    built = model(bias=True, norm="layernorm")
    optimizer = AdamwConfig(lr=0.1, weight_decay=0.5).build(built)
    before = {name: p.detach().clone() for name, p in built.named_parameters()}
    for p in built.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    for name, p in built.named_parameters():
        shrunk = 1.0 if p.ndim < 2 else 0.95  # 1 - lr · weight_decay
        assert torch.allclose(p, before[name] * shrunk), name


def test_adamw_is_fused_on_the_cpu():
    assert AdamwConfig().build(model()).defaults["fused"] is True


def test_the_settings_reach_adamw():
    optimizer = AdamwConfig(lr=0.1, beta1=0.7, beta2=0.8, eps=1e-3, weight_decay=0.5).build(model())
    assert [(g["lr"], g["initial_lr"], g["betas"], g["eps"]) for g in optimizer.param_groups] == [
        (0.1, 0.1, (0.7, 0.8), 1e-3)
    ] * 3
    assert [g["weight_decay"] for g in optimizer.param_groups] == [0.5, 0.5, 0.0]  # matrices, embeddings, vectors
