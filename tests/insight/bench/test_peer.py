import pytest
import torch

from gpt.insight.bench import peer
from gpt.insight.bench.peer import NoPeerError, peer_of, require_package
from gpt.model.gpt import GPT

CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM"}


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.fixture
def transformers():
    return pytest.importorskip("transformers")


def test_the_peer_has_as_many_parameters(transformers, kind, shape):
    ours = GPT(shape(kind))
    found = peer_of(ours)
    assert (found.kind, found.differs) == (kind, ())
    built = found.build()
    assert type(built).__name__ == CLASSES[kind]
    assert parameters(built) == ours.count_parameters()
    assert built.config._attn_implementation == "sdpa"
    assert built.training


@pytest.mark.parametrize("tied", [True, False])
def test_tied_or_not(transformers, kind, tied, shape):
    ours = GPT(shape(kind, tied=tied))
    assert parameters(peer_of(ours).build()) == ours.count_parameters()


def test_gpt2_without_biases_is_measured_beside_one_with_them(transformers, shape):
    """Biases of qkv 48, out 16, input 64, output 16, and of three layer norms 48: 192 of a block and the last norm."""
    ours = GPT(shape("gpt2", bias=False))
    found = peer_of(ours)
    assert found.differs == ("it has biases",)
    assert parameters(found.build()) - ours.count_parameters() == 48 + 16 + 64 + 16 + 3 * 16


def test_biases_in_llama_agree_and_in_qwen3_are_missing_in_the_feedforward(transformers, shape):
    """SwiGLU of 64: biases of gate and up 128, of the output 16."""
    ours = GPT(shape("llama", bias=True))
    assert parameters(peer_of(ours).build()) == ours.count_parameters()
    ours = GPT(shape("qwen3", bias=True))
    found = peer_of(ours)
    assert found.differs == ("its feedforward has no biases",)
    assert ours.count_parameters() - parameters(found.build()) == 128 + 16


def test_its_settings_are_ours(kind, shape):
    settings = dict(peer_of(GPT(shape(kind, norm_eps=1e-4, dropout=0.25))).settings)
    assert settings["vocab_size"] == 11
    assert settings["eos_token_id"] is None  # else it might stop before ours
    if kind == "gpt2":
        assert settings["n_positions"] == 8
        assert settings["layer_norm_epsilon"] == 1e-4
        assert [settings[name] for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")] == [0.25] * 3
    else:
        assert (settings["num_attention_heads"], settings["num_key_value_heads"]) == (2, 1)
        assert settings["head_dim"] == {"llama": 8, "qwen3": 12}[kind]
        assert settings["rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
        assert settings["rms_norm_eps"] == 1e-4


def test_the_same_weights_give_the_same_logits(transformers, shape):
    """So the shape is the same in all that parameter counts do not show: activation, order, base of the angles."""
    torch.manual_seed(0)
    ours = GPT(shape("qwen3")).eval()
    theirs = peer_of(ours).build().eval()
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


@pytest.mark.parametrize(
    "settings, reason",
    [
        ({"feedforward": {"name": "relu2"}}, "feedforward relu2 and qk_norm true"),
        ({"position": {"name": "alibi"}}, "position alibi"),
        ({"norm": "layernorm"}, "layernorm"),
    ],
)
def test_a_shape_that_no_class_has(settings, reason, shape):
    with pytest.raises(NoPeerError, match=f"^transformers has no class with .*{reason}"):
        peer_of(GPT(shape("qwen3", **settings)))


def test_gpt2_with_fewer_key_heads_has_no_peer(shape):
    with pytest.raises(NoPeerError, match="n_kv_head"):
        peer_of(GPT(shape("gpt2", n_kv_head=1)))


def test_what_is_not_installed_is_one_sentence_with_the_way_out(monkeypatch):
    def missing(name: str) -> str:
        raise peer.PackageNotFoundError(name)

    monkeypatch.setattr(peer, "version", missing)
    with pytest.raises(NoPeerError, match=r"transformers is not installed; .*pip install -e '\.\[dev\]'$"):
        require_package()
    monkeypatch.setattr(peer, "version", lambda name: "4.57.1")
    with pytest.raises(NoPeerError, match=r"transformers 4\.57\.1 is installed, 5\.x is needed"):
        require_package()
