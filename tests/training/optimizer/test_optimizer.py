import pytest
import torch

from gpt.config import UserError, variant_class, variant_names
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.optimizer import load_optimizer_state, optimizer_state, parameter_groups
from gpt.training.optimizer.adamw import AdamwConfig

PACKAGE = "gpt.training.optimizer"

ALONE = Processes(torch.device("cpu"))


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


@pytest.mark.parametrize("name", variant_names("gpt.training.optimizer"))
class TestState:
    def build(self, name, seed=0, **sizes):
        torch.manual_seed(seed)
        model = GPT(GPTConfig(**{"vocab_size": 11, "context": 8, "n_layer": 1, "n_head": 2, "d_model": 8, **sizes}))
        return model, variant_class("gpt.training.optimizer", name)(name=name).build(model)

    def train(self, model, optimizer, updates):
        for step in range(updates):
            tokens = (torch.arange(8) * (step + 3))[None] % 11
            model(tokens, tokens).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    def test_what_is_remembered_is_all_that_is_needed_to_go_on(self, name):
        model, optimizer = self.build(name)
        self.train(model, optimizer, 3)
        weights = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        remembered = {key: tensor.clone() for key, tensor in optimizer_state(model, optimizer).items()}
        self.train(model, optimizer, 2)
        other, again = self.build(name, seed=1)
        other.load_state_dict(weights)
        load_optimizer_state(other, again, lambda: remembered, ALONE)
        assert all(torch.equal(tensor, weights[key]) for key, tensor in other.state_dict().items())
        assert [g["lr"] for g in again.param_groups] == [g["initial_lr"] for g in again.param_groups]
        self.train(other, again, 2)
        assert all(torch.equal(tensor, model.state_dict()[key]) for key, tensor in other.state_dict().items())

    def test_it_is_kept_by_the_parameters_names(self, name):
        model, optimizer = self.build(name)
        self.train(model, optimizer, 1)
        of = {key.removeprefix("state.").rpartition(".")[0] for key in optimizer_state(model, optimizer)}
        assert of == dict(model.named_parameters()).keys()

    @pytest.mark.parametrize("change", ["shape", "missing", "more"])
    def test_what_is_anothers_is_refused_by_name(self, name, change):
        model, optimizer = self.build(name)
        self.train(model, optimizer, 1)
        remembered = dict(optimizer_state(model, optimizer))
        key = next(key for key in remembered if "embedding" in key and "exp_avg" in key)
        tensor = remembered.pop(key)
        if change == "shape":
            remembered[key] = tensor[:-1]
        if change == "more":
            remembered |= {key: tensor, f"{key}_more": tensor}
        with pytest.raises(UserError, match=rf"resume: the state of the optimizer does not fit .*{key}"):
            load_optimizer_state(*self.build(name), lambda: remembered, ALONE)
