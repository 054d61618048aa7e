import pytest
import torch

from gpt.device import choose_precision
from gpt.insight.bench.decoding import random_prompts
from gpt.insight.bench.peer import NoPeerError
from gpt.insight.bench.peer.transformers import DIFFERS, build
from gpt.insight.bench.race import Entry
from gpt.interop.hugging_face.architectures import ARCHITECTURES
from gpt.model.gpt import GPT

pytest.importorskip("transformers")
CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM"}


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_peer_has_as_many_parameters(kind, shape):
    ours = GPT(shape(kind))
    peer = build(ours)
    assert peer.description.endswith(f", {CLASSES[kind]}, {ours.count_parameters():,} parameters")
    assert parameters(peer.model) == ours.count_parameters()
    assert peer.model.config._attn_implementation == "sdpa"
    assert peer.model.training


@pytest.mark.parametrize("tied", [True, False])
def test_tied_or_not(kind, tied, shape):
    ours = GPT(shape(kind, tied=tied))
    assert parameters(build(ours).model) == ours.count_parameters()


def test_gpt2_without_biases_is_measured_beside_one_with_them(shape):
    """Biases of qkv 48, out 16, input 64, output 16, and of three layer norms 48: 192 of a block and the last norm."""
    ours = GPT(shape("gpt2", bias=False))
    peer = build(ours)
    assert peer.description.endswith(", 192 more; it has biases")
    assert parameters(peer.model) - ours.count_parameters() == 48 + 16 + 64 + 16 + 3 * 16


def test_biases_in_llama_agree_and_in_qwen3_are_missing_in_the_feedforward(shape):
    """SwiGLU of 64: biases of gate and up 128, of the output 16."""
    ours = GPT(shape("llama", bias=True))
    assert parameters(build(ours).model) == ours.count_parameters()
    ours = GPT(shape("qwen3", bias=True))
    peer = build(ours)
    assert peer.description.endswith(", 144 fewer; its feedforward has no biases")
    assert ours.count_parameters() - parameters(peer.model) == 128 + 16


def test_its_settings_are_ours(kind, shape):
    settings = ARCHITECTURES[kind].settings(GPT(shape(kind, norm_eps=1e-4, dropout=0.25)))
    assert settings["vocab_size"] == 11
    assert settings["eos_token_id"] is None  # else it might stop before ours
    if kind == "gpt2":
        assert settings["n_positions"] == 8
        assert settings["layer_norm_epsilon"] == 1e-4
        assert [settings[name] for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")] == [0.25] * 3
    else:
        assert (settings["num_attention_heads"], settings["num_key_value_heads"]) == (2, 1)
        assert settings["head_dim"] == {"llama": 8, "qwen3": 12}[kind]
        assert (settings["rope_theta"], settings["rope_scaling"]) == (10000.0, None)
        assert settings["rms_norm_eps"] == 1e-4


def test_the_same_weights_give_the_same_logits(shape):
    """So the shape is the same in all that parameter counts do not show: activation, order, base of the angles."""
    torch.manual_seed(0)
    ours = GPT(shape("qwen3")).eval()
    theirs = build(ours).model.eval()
    block, layer = ours.blocks[0], theirs.model.layers[0]
    query, key, value = block.attention.qkv.weight.split([24, 12, 12])
    gate, up = block.feedforward.input.weight.chunk(2)
    copies = {
        theirs.model.embed_tokens: ours.embedding.weight,
        layer.self_attn.q_proj: query,
        layer.self_attn.k_proj: key,
        layer.self_attn.v_proj: value,
        layer.self_attn.o_proj: block.attention.output.weight,
        layer.mlp.gate_proj: gate,
        layer.mlp.up_proj: up,
        layer.mlp.down_proj: block.feedforward.output.weight,
    }
    with torch.no_grad():
        for module, weight in copies.items():
            module.weight.copy_(weight)
        tokens = torch.randint(11, (2, 8))
        torch.testing.assert_close(theirs(tokens).logits, ours(tokens), rtol=1e-5, atol=1e-6)


def test_what_is_said_of_dropout(kind, shape):
    told = DIFFERS[kind](shape(kind, dropout=0.1))
    assert told == ([] if kind == "gpt2" else ["it drops attention weights only"])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_writes_as_many_tokens_as_are_asked_for(kind, rows, precision, bench_settings):
    """4 after a prompt of 4, which is all that the context of 8 takes."""
    settings = bench_settings(kind)
    peer = build(GPT(settings.shape))
    precise = choose_precision(precision, torch.device("cpu"))
    contender = peer.decoding(precise, random_prompts(settings, rows), settings.new_tokens)
    assert contender.entry == Entry("transformers", precision)
    assert contender.work() == rows * 4
    assert peer.model.training


def test_another_major_version_is_none(monkeypatch, shape):
    monkeypatch.setattr("gpt.insight.bench.peer.version", lambda name: "4.57.1")
    with pytest.raises(NoPeerError, match=r"transformers 4\.57\.1 is installed, 5\.x is needed"):
        build(GPT(shape("llama")))
