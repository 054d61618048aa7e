"""nanoGPT's checkpoints: the same logits as its formulas give, whatever wrapped them; and no pickle is loaded."""

import json
import pickle

import pytest
import torch
from torch.nn import functional as F

import gpt
from gpt.config import UserError
from gpt.data.tokenizer.named import NamedConfig
from gpt.interop.nanogpt import NanoGpt, of_characters
from gpt.interop.opening import opened

ARGS = {"n_layer": 2, "n_head": 4, "n_embd": 32, "block_size": 16, "bias": True, "vocab_size": 3, "dropout": 0.1}
LINEAR = {"attn.c_attn": (3, 1), "attn.c_proj": (1, 1), "mlp.c_fc": (4, 1), "mlp.c_proj": (1, 4)}
"""Shapes in widths."""


def state_of(args):
    """Random weights under its names: a linear layer is (out, in), the head is the embedding."""
    torch.manual_seed(0)
    biased, width = args["bias"], args["n_embd"]
    shapes = {
        "transformer.wte.weight": (args["vocab_size"], width),
        "transformer.wpe.weight": (args["block_size"], width),
    }
    norms = ["transformer.ln_f", *(f"transformer.h.{i}.ln_{n}" for i in range(args["n_layer"]) for n in (1, 2))]
    shapes |= {f"{name}.{part}": (width,) for name in norms for part in ("weight", "bias")}
    for layer in range(args["n_layer"]):
        for name, (out, into) in LINEAR.items():
            linear = f"transformer.h.{layer}.{name}"
            shapes |= {f"{linear}.weight": (out * width, into * width), f"{linear}.bias": (out * width,)}
    state = {name: torch.randn(shape) * 0.3 for name, shape in shapes.items() if biased or not name.endswith("bias")}
    return {**state, "lm_head.weight": state["transformer.wte.weight"]}


def logits_of(state, args, tokens):
    """What its forward computes, as formulas on the weights."""
    state = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state.get(f"{name}.bias"), 1e-5)

    def linear(x, name):
        return F.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))

    x = state["wte.weight"][tokens] + state["wpe.weight"][: tokens.size(1)]
    for layer in range(args["n_layer"]):
        here = f"h.{layer}"
        parts = linear(norm(x, f"{here}.ln_1"), f"{here}.attn.c_attn").chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (args["n_head"], -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + linear(mixed, f"{here}.attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, f"{here}.ln_2"), f"{here}.mlp.c_fc")), f"{here}.mlp.c_proj")
    return norm(x, "ln_f") @ state["lm_head.weight"].T


@pytest.fixture
def save(tmp_path):
    """Writes a checkpoint as its train.py does, its characters beside it."""

    def build(state=None, meta=True, **more):
        args = {**ARGS, **more}
        state = state_of({**ARGS, **more}) if state is None else state
        content = {"model": state, "model_args": args, "iter_num": 7, "best_val_loss": torch.tensor(1.5)}
        torch.save({**content, "optimizer": {"state": {}}, "config": {"dataset": "songs"}}, tmp_path / "ckpt.pt")
        if meta:
            (tmp_path / "meta.json").write_text(json.dumps({"vocab_size": 3, "stoi": {"\n": 0, "a": 1, "私": 2}}))
        return tmp_path / "ckpt.pt"

    return build


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["", "_orig_mod."])
def test_it_gives_the_logits_that_nanogpt_gives(save, bias, prefix):
    args = {**ARGS, "bias": bias}
    state = state_of(args)
    masked = {f"{prefix}{name}": tensor for name, tensor in state.items()}
    masked[f"{prefix}transformer.h.0.attn.bias"] = torch.ones(1, 1, 16, 16).tril()
    run = gpt.load(f"nanogpt:{save(masked, bias=bias)}", "cpu", "fp32")
    tokens = torch.randint(3, (2, 16))
    with torch.no_grad():
        expected = logits_of(state, args, tokens)
        torch.testing.assert_close(run.model(tokens), expected, rtol=0, atol=1e-5 * expected.abs().max().item())
    assert run.model.config.bias is bias
    assert run.tokenizer.encode("a私\n") == [1, 2, 0]
    assert set(run.generate("a", max_new_tokens=9)) <= {"a", "\n", "私"}


def test_old_checkpoints_say_nothing_of_biases_and_have_them(save):
    file = save()
    content = torch.load(file, weights_only=True)
    del content["model_args"]["bias"], content["model_args"]["dropout"]
    torch.save(content, file)
    config = NanoGpt(str(file)).config
    assert (config.bias, config.dropout, config.feedforward.form) == (True, 0.0, "exact")


@pytest.mark.parametrize("given, rows", [(None, 50304), (50257, 50257), (50304, 50304)])
def test_gpt2s_vocabulary_is_its_tokenizers(save, monkeypatch, given, rows):
    monkeypatch.setattr(NamedConfig, "build", lambda self, documents: self.encoding)
    small = {"n_layer": 1, "n_embd": 4, "n_head": 1, "vocab_size": rows}
    state = state_of({**ARGS, **small})
    found = NanoGpt(str(save(state, meta=False, **{**small, "vocab_size": given})))
    assert (found.config.vocab_size, found.tokenizer()) == (rows, "gpt2")


def test_characters_without_their_json_are_refused_with_the_way_to_make_it(save):
    found = NanoGpt(str(save(meta=False)))
    told = r"meta\.json is not there, and 3 rows are not GPT-2's.*pickle.load\(open\('data/songs/meta\.pkl'"
    with pytest.raises(UserError, match=told) as error:
        found.tokenizer()
    assert found.folder.absolute().as_posix() in str(error.value)


def test_the_line_that_is_told_makes_what_is_read(save, tmp_path, monkeypatch):
    file = save(meta=False)
    (tmp_path / "data" / "songs").mkdir(parents=True)
    meta = {"vocab_size": 3, "itos": {0: "\n", 1: "a", 2: "私"}, "stoi": {"\n": 0, "a": 1, "私": 2}}
    (tmp_path / "data" / "songs" / "meta.pkl").write_bytes(pickle.dumps(meta))
    with pytest.raises(UserError) as error:
        NanoGpt(str(file)).tokenizer()
    monkeypatch.chdir(tmp_path)
    exec(str(error.value).split('python -c "', 1)[1].removesuffix('"'), {})
    assert NanoGpt(str(file)).tokenizer().encode("私a") == [2, 1]


@pytest.mark.parametrize("meta", [{"itos": ["\n", "a"]}, {"itos": {"1": "a", "0": "\n"}}, {"stoi": {"a": 1, "\n": 0}}])
def test_characters_in_each_way(meta):
    assert of_characters(meta).encode("a\n") == [1, 0]


@pytest.mark.parametrize(
    "meta",
    [
        {}, {"itos": []}, {"itos": 5}, {"stoi": [1]}, {"stoi": {"ab": 0}}, {"stoi": {"a": 1}},
        {"stoi": {"b": 0, "a": 1}},
        {"itos": {"0": 7}}, {"itos": ["a", "a"]}, {"itos": ["\ud800"]}, {"stoi": {"a": "x"}}, {"itos": {"x": "a"}},
    ],
    ids=str,
)  # fmt: skip
def test_other_vocabularies_are_refused(meta):
    with pytest.raises(UserError, match="again"):
        of_characters(meta)


class Harm:
    def __reduce__(self):
        return (exit, (1,))


@pytest.mark.parametrize(
    "content",
    [{"model": {}, "model_args": Harm()}, {"model": Harm()}, [1], {"model": {}}, {"model": 5, "model_args": {}}],
    ids=["harm", "more harm", "a list", "no arguments", "no weights"],
)  # fmt: skip
def test_what_would_run_code_or_is_no_checkpoint_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "ckpt.pt")
    with pytest.raises(UserError, match="which is never loaded; name|is no checkpoint of nanoGPT's"):
        opened(f"nanogpt:{tmp_path / 'ckpt.pt'}")


@pytest.mark.parametrize("content", [b"", b"nothing", pickle.dumps({"model": {}}), b"PK\x03\x04"])
def test_garbage_is_one_line(tmp_path, content):
    (tmp_path / "ckpt.pt").write_bytes(content)
    with pytest.raises(UserError, match="is damaged, or holds more than tensors"):
        NanoGpt(str(tmp_path / "ckpt.pt"))
    with pytest.raises(UserError, match=r"gone: cannot be read: No such file or directory"):
        NanoGpt(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    "more, told",
    [
        ({"use_rotary": True}, "model_args has 'use_rotary', which nanoGPT has not"),
        ({"n_layer": 3}, r"the tensor transformer\.h\.2\..* is not there"),
        ({"n_embd": "wide"}, "model.d_model: expected a valid integer"),
        ({"n_head": 5}, "not divisible by n_head 5"),
    ],
)
def test_settings_that_do_not_fit_are_refused(save, more, told):
    with pytest.raises(UserError, match=told):
        NanoGpt(str(save(state_of(ARGS), **more)))


def test_weights_that_do_not_fit_are_refused(save):
    state = state_of(ARGS)
    with pytest.raises(UserError, match=r"ln_f\.weight is \(31,\), by the configuration \(32,\)"):
        NanoGpt(str(save({**state, "transformer.ln_f.weight": torch.zeros(31)})))
    with pytest.raises(UserError, match=r"ckpt\.pt: .*something else than tensors"):
        NanoGpt(str(save({**state, "transformer.ln_f.weight": 5})))
    with pytest.raises(UserError, match=r"lm_head\.weight is not transformer\.wte\.weight"):
        NanoGpt(str(save({**state, "lm_head.weight": torch.zeros(3, 32)}))).weights()
    with pytest.raises(UserError, match="not all finite"):
        NanoGpt(str(save({**state, "transformer.ln_f.weight": torch.full((32,), torch.nan)}))).weights()


@pytest.mark.parametrize("harm", [torch.Tensor.int, torch.Tensor.bool, torch.Tensor.to_sparse, lambda t: t.to("meta")])
def test_weights_that_are_no_plain_numbers_are_refused(save, harm):
    state = state_of(ARGS)
    name = "transformer.wpe.weight"
    with pytest.raises(UserError, match=rf"ckpt\.pt: {name} holds no fractional numbers of 16, 32 or 64 bits"):
        NanoGpt(str(save({**state, name: harm(state[name])})))


@pytest.mark.parametrize("characters", ["\n", "\nabc"])
def test_the_characters_of_another_data_set_are_refused(save, characters):
    file = save()
    (file.parent / "meta.json").write_text(json.dumps({"itos": list(characters)}))
    with pytest.raises(UserError, match=rf"meta\.json: these are {len(characters)} characters, .* have 3 rows"):
        NanoGpt(str(file)).tokenizer()
