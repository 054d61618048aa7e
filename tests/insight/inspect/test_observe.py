"""What is shown is what the model did: for every attention that there is."""

import pytest
import torch

from gpt.config import UserError, parse, variant_names
from gpt.insight.inspect.observe import observe
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

LENGTH = 24


def models():
    for attention in variant_names("gpt.model.attention"):
        for position in variant_names("gpt.model.position"):
            settings = {"vocab_size": 29, "context": 32, "n_layer": 2, "n_head": 4, "n_kv_head": 2, "d_model": 32}
            parts = {"attention": {"name": attention}, "position": {"name": position}, "init_std": 0.3}
            try:
                with torch.device("meta"):
                    config = parse(GPTConfig, {**settings, **parts})
                    GPT(config)
            except UserError:  # an illegal pair
                continue
            yield pytest.param(config, id=f"{attention}-{position}")


@pytest.fixture
def ids():
    return torch.randint(29, (LENGTH,), generator=torch.Generator().manual_seed(1)).tolist()


@pytest.fixture
def build():
    def build(config):
        torch.manual_seed(0)
        return GPT(config).eval()

    return build


@pytest.mark.parametrize("config", list(models()))
def test_weights_times_values_are_what_the_layer_mixed(config, build, ids):
    model, mixed, values = build(config), [], []
    for attention in model.attentions:
        attention.output.register_forward_pre_hook(lambda _, inputs: mixed.append(inputs[0]))
        attention.register_forward_pre_hook(lambda a, inputs: values.append(a.repeat(a.place(*inputs[:2])[2])))
    seen = observe(model, ids)
    assert len(seen.weights) == config.n_layer
    for weights, value, layer in zip(seen.weights, values, mixed, strict=True):
        assert weights.shape == (4, LENGTH, LENGTH)
        expected = (weights[None] @ value).transpose(1, 2).flatten(2)
        assert (expected - layer).abs().max() <= 1e-5 * layer.abs().max()


@pytest.mark.parametrize("config", list(models()))
def test_rows_sum_to_1_and_look_at_nothing_that_comes_later(config, build, ids):
    for weights in observe(build(config), ids).weights:
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, LENGTH))
        assert (weights >= 0).all()
        assert not weights.triu(1).any()


def test_the_model_is_left_as_it_was(build, ids):
    model = build(GPTConfig(vocab_size=29, context=32, n_layer=2, n_head=2, d_model=16))
    expected = model(torch.tensor([ids]))[0]
    torch.testing.assert_close(observe(model, ids).logits, expected, rtol=0, atol=0)
    assert not any(attention._forward_pre_hooks for attention in model.attentions)


def test_hooks_go_when_the_forward_fails(build):
    model = build(GPTConfig(vocab_size=29, context=4, n_layer=1, n_head=2, d_model=16, position={"name": "learned"}))
    with pytest.raises(ValueError, match="exceed"):
        observe(model, [0] * 9)
    assert not model.attentions[0]._forward_pre_hooks


def test_low_precision_weights_are_fp32(build, ids):
    model = build(GPTConfig(vocab_size=29, context=32, n_layer=1, n_head=2, d_model=16)).bfloat16()
    seen = observe(model, ids)
    assert {seen.logits.dtype, seen.weights[0].dtype} == {torch.float32}
    torch.testing.assert_close(seen.weights[0].sum(-1), torch.ones(2, LENGTH))
