"""What is written opens in transformers, and is the same model."""

import json

import pytest
import torch
from safetensors import safe_open

from gpt.config import UserError
from gpt.data.tokenizer.byte import Byte
from gpt.interop.hugging_face.architectures import ARCHITECTURES, holding
from gpt.interop.hugging_face.writing import write
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

transformers = pytest.importorskip("transformers")
CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM"}


def opened(model, folder):
    architecture = holding(model)
    write(architecture, model, Byte(), folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    assert type(theirs).__name__ == CLASSES[architecture.kind]
    return theirs


def assert_same(theirs, ours):
    tokens = torch.randint(ours.config.vocab_size, (2, ours.config.context))
    with torch.no_grad():
        expected = ours(tokens)
        torch.testing.assert_close(theirs(tokens).logits, expected, rtol=0, atol=1e-5 * expected.abs().max().item())


def test_it_gives_the_same_logits(random_model, shape, tmp_path):
    ours = random_model(shape)
    assert shape.startswith(holding(ours).kind)
    assert_same(opened(ours, tmp_path), ours)


@pytest.mark.parametrize(
    "shape, settings", [("gpt2", {"bias": False}), ("gpt2", {"norm_gain": False}), ("qwen3", {"norm_gain": False})]
)
def test_what_the_class_always_has_is_neutral(random_model, shape, settings, tmp_path):
    ours = random_model(shape, **settings)
    assert_same(opened(ours, tmp_path), ours)


def test_the_files_say_what_others_ask(random_model, tmp_path):
    write(holding(random_model()), random_model(), Byte(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert (config["bos_token_id"], config["eos_token_id"], config["dtype"]) == (256, 256, "float32")
    assert (config["max_position_embeddings"], config["head_dim"], config["num_key_value_heads"]) == (32, 8, 1)
    assert json.loads((tmp_path / "generation_config.json").read_text())["eos_token_id"] == 256
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
        assert "lm_head.weight" not in file.keys()  # noqa: SIM118 - it is no mapping
        assert file.get_tensor("model.norm.weight").dtype == torch.float32


@pytest.mark.parametrize(
    "settings, named",
    [
        ({"position": {"name": "alibi"}}, "model.position.name='alibi'"),
        (
            {"feedforward": {"name": "relu2"}, "logit_softcap": 30.0},
            "model.feedforward.name='relu2', model.logit_softcap=30.0",
        ),
        ({"attention": {"name": "linear"}, "n_kv_head": None}, "model.attention.name='linear'"),
        ({"attention": {"name": "sliding_window"}}, "model.attention.sinks=4"),
        ({"scale_embedding": True}, "model.scale_embedding=true"),
        ({"bias": True}, "model.qk_norm=true"),
        (
            {"qk_norm": False, "attention": {"name": "sliding_window", "sinks": 0}},
            "model.attention.name='sliding_window'",
        ),
        ({"qk_norm": False, "d_model": 30, "head_dim": 8}, "model.d_model=30"),
    ],
)  # fmt: skip
def test_what_no_class_holds_is_refused_by_name(settings, named):
    config = GPTConfig(**{"vocab_size": 5, "n_head": 4, "d_model": 32, "n_layer": 1, "n_kv_head": 1, **settings})
    with pytest.raises(UserError, match="export: no class .* there are GPT2LMHeadModel .*, LlamaForCausalLM") as told:
        holding(GPT(config))
    assert f"model: {named} cannot be in" in str(told.value)


def test_gpt2_has_a_key_head_for_each_query_head():
    settings = {"norm": "layernorm", "qk_norm": False, "position": {"name": "learned"}, "feedforward": {"name": "gelu"}}
    model = GPT(GPTConfig(vocab_size=5, n_layer=1, n_head=4, d_model=32, n_kv_head=2, head_dim=4, **settings))
    with pytest.raises(UserError, match=r"model\.n_kv_head=2, model\.head_dim=4 cannot be in GPT2LMHeadModel"):
        holding(model)


def test_the_defaults_are_theirs():
    """A folder leaves out what is the default."""
    for kind, architecture in ARCHITECTURES.items():
        config = transformers.AutoConfig.for_model(kind)
        told = {name: getattr(config, name) for name in (*architecture.sizes, *architecture.fixed)}
        if kind == "llama":  # null there means these
            told |= {"num_key_value_heads": None, "head_dim": None}
        expected = {name: size.default for name, size in architecture.sizes.items()} | dict(architecture.fixed)
        assert told == expected
