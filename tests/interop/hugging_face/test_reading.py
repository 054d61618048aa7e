"""What transformers writes is read as the same model, and comes back bit for bit; what is not such is refused."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import gpt
from gpt.config import UserError
from gpt.data.tokenizer.byte import Byte
from gpt.interop.foreign import empty
from gpt.interop.hugging_face.architectures import holding
from gpt.interop.hugging_face.reading import HuggingFace
from gpt.interop.hugging_face.tokenizer import write_tokenizer
from gpt.interop.hugging_face.writing import weights, write
from gpt.interop.opening import opened
from gpt.model.gpt import GPT

transformers = pytest.importorskip("transformers")
CPU = torch.device("cpu")

ALIKE = {"vocab_size": 257, "bos_token_id": 256, "eos_token_id": 256}
GPT2 = {**ALIKE, "n_positions": 96, "n_embd": 32, "n_layer": 2, "n_head": 4}
LLAMA = {
    **ALIKE, "max_position_embeddings": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4,
}  # fmt: skip
THEIRS = {
    "gpt2": ("gpt2", GPT2),
    "gpt2, untied, narrow": (
        "gpt2", {**GPT2, "tie_word_embeddings": False, "n_inner": 24, "activation_function": "gelu"},
    ),
    "llama, multi-head": ("llama", LLAMA),
    "llama, grouped, tied": ("llama", {**LLAMA, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    "llama, multi-query, biased": (
        "llama", {**LLAMA, "num_key_value_heads": 1, "attention_bias": True, "mlp_bias": True, "head_dim": 12},
    ),
    "llama, scaled": ("llama", {**LLAMA, "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e4}}),
    "qwen3": ("qwen3", {**LLAMA, "num_key_value_heads": 2, "head_dim": 8}),
    "qwen3, windows": (
        "qwen3",
        {**LLAMA, "num_key_value_heads": 1, "head_dim": 16, "use_sliding_window": True, "sliding_window": 5,
         "layer_types": ["sliding_attention", "full_attention"], "tie_word_embeddings": True},
    ),
}  # fmt: skip


def random_theirs(kind, settings):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **settings)).eval()
    for name, parameter in model.named_parameters():
        gain = "norm" in name or "ln_" in name
        torch.nn.init.normal_(parameter, mean=float(gain and name.endswith("weight")), std=0.2)
    return model


@pytest.fixture
def written(tmp_path):
    """Their model, and the folder that it is saved in."""

    def build(which="llama, multi-head", **options):
        model = random_theirs(*THEIRS[which])
        model.save_pretrained(tmp_path / "theirs", **options)
        write_tokenizer(Byte(), tmp_path / "theirs", 96)
        return model, tmp_path / "theirs"

    return build


@pytest.mark.parametrize("which", THEIRS)
def test_there_and_back(which, written, tmp_path):
    theirs, folder = written(which)
    ours, tokenizer = HuggingFace(str(folder)).load(CPU)
    assert tokenizer.vocab_size == 257
    tokens = torch.randint(257, (2, 64))
    with torch.no_grad():
        expected = theirs(tokens).logits
        torch.testing.assert_close(ours(tokens), expected, rtol=0, atol=1e-5 * expected.abs().max().item())
    (tmp_path / "again").mkdir()
    write(holding(ours), ours, tokenizer, tmp_path / "again")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "again")
    assert type(again) is type(theirs)
    before, after = theirs.state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


@pytest.mark.parametrize("which", ["gpt2", "llama, grouped, tied", "qwen3"])
def test_both_write_the_same_greedily(which, written):
    theirs, folder = written(which)
    run = gpt.load(f"hf:{folder}", "cpu", "fp32")
    prompt = torch.tensor([list(b"The people")])
    greedy = {"max_new_tokens": 64, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    written_by_them = theirs.generate(prompt, attention_mask=torch.ones_like(prompt), **greedy)[0, 10:].tolist()
    ours = []
    with torch.no_grad():
        for _ in range(64):
            ours.append(int(run.model(torch.cat((prompt, torch.tensor([ours], dtype=torch.long)), 1))[0, -1].argmax()))
    differ = [i for i, pair in enumerate(zip(ours, written_by_them, strict=True)) if pair[0] != pair[1]]
    if differ:  # only where the top two are closer than rounding
        seen = torch.cat((prompt, torch.tensor([ours[: differ[0]]], dtype=torch.long)), 1)
        top = run.model(seen)[0, -1].topk(2).values
        assert top[0] - top[1] < 1e-5 * top[0].abs()


def test_what_it_is_called_and_what_it_writes(written, monkeypatch):
    _, folder = written("qwen3")
    monkeypatch.chdir(folder.parent)
    run = gpt.load("hf:theirs", "cpu", "fp32")
    assert run.checkpoint is None
    assert run.describe().startswith(f"hf:{folder}, ")
    text = run.generate("ab", max_new_tokens=5, temperature=0)
    with torch.no_grad():
        first = run.model(torch.tensor([list(b"ab")]))[0, -1].argmax()
    assert text.encode()[:1] == bytes([int(first)]) or first > 127  # a byte of no character is written as U+FFFD


def test_shards_are_read_and_must_be_there(written):
    theirs, folder = written("llama, multi-head", max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    ours, _ = HuggingFace(str(folder)).load(CPU)
    assert torch.equal(ours.embedding.weight, theirs.model.embed_tokens.weight)
    index = folder / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    for wrong in ("../theirs/config.json", "gone.safetensors"):
        content["weight_map"]["model.norm.weight"] = wrong
        index.write_text(json.dumps(content))
        with pytest.raises(UserError, match=f"names '{wrong}', which is no file there"):
            HuggingFace(str(folder))
    index.write_text('{"weight_map": []}')
    with pytest.raises(UserError, match="names 'a shard', which is no file there"):
        HuggingFace(str(folder))


def test_names_without_their_beginning_and_masks_as_older_folders_have_them(written):
    theirs, folder = written("gpt2")
    tensors = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    bare["h.0.attn.bias"] = torch.ones(1, 1, 96, 96, dtype=torch.uint8)
    save_file(bare, folder / "model.safetensors")
    assert torch.equal(HuggingFace(str(folder)).weights()["norm.bias"], theirs.transformer.ln_f.bias)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_read_as_it_is(written, dtype):
    theirs, folder = written("qwen3")
    theirs.to(dtype).save_pretrained(folder)
    found = HuggingFace(str(folder)).weights()
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    assert torch.equal(found["embedding.weight"], theirs.model.embed_tokens.weight.float())


WINDOW = {"use_sliding_window": True, "sliding_window": 5, "layer_types": None}
OLD = {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}}
NEW = {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}}


@pytest.mark.parametrize("angles", [OLD, NEW])
def test_angles_are_read_in_the_old_way_and_the_new(written, angles):
    _, folder = written()
    change(folder, **{"rope_parameters": None, **angles})
    position = HuggingFace(str(folder)).config.position
    assert (position.name, position.base, position.factor) == ("rope", 5e5, 4.0)


def change(folder, **settings):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **settings}))


@pytest.mark.parametrize(
    "which, settings, told",
    [
        ("llama, multi-head", {"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "rope_type is 'llama3'"),
        ("llama, multi-head", {"rope_scaling": {"type": "dynamic", "factor": 8.0}}, "rope_type is "),
        ("llama, multi-head", {"rope_scaling": {"type": "linear"}}, "model.position.factor: expected a valid number"),
        ("llama, multi-head", {"rope_theta": 0, "rope_parameters": None}, "model.position.base: expected "),
        ("qwen3", {"rope_parameters": {"rope_type": "yarn", "factor": 8.0}}, "rope_type is 'yarn', which no"),
        ("qwen3", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"),
        ("qwen3", {"attention_bias": True}, "attention_bias is true, which no model here has; false can be read"),
        ("llama, multi-head", {"attention_bias": True}, "attention_bias is true.*mlp_bias is false, and both alike"),
        ("llama, multi-head", {"hidden_act": "gelu"}, "hidden_act is 'gelu', which no model here has; 'silu' can be"),
        ("gpt2", {"activation_function": "relu"}, "activation_function is 'relu'"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is true"),
        ("gpt2", {"model_type": "mamba"}, "model_type is 'mamba', which no model here has; gpt2, llama, qwen3"),
        ("gpt2", {"model_type": ["gpt2"]}, "model_type is "),
        ("gpt2", {"n_layer": "two"}, "model.n_layer: expected a valid integer, got 'two'"),
        ("gpt2", {"n_layer": 900}, "do not hold the 900 layers"),
        ("gpt2", {"n_layer": 1}, r"the tensor transformer\.h\.1\..* is .*by the configuration not there"),
        ("gpt2", {"n_head": 5}, "model.d_model: 32 is not divisible by n_head 5"),
        ("gpt2", {"vocab_size": None}, "model.vocab_size: a number of tokens is needed"),
        ("gpt2", {"vocab_size": 300}, r"transformer\.wte\.weight is \(257, 32\), by the configuration \(300, 32\)"),
        ("qwen3", {**WINDOW, "layer_types": ["full_attention", "sliding_attention"]}, "layer_types is.*for the last"),
        ("qwen3", {**WINDOW, "max_window_layers": 1}, "layer_types is.*for the last"),
        ("qwen3", {**WINDOW, "layer_types": ["chunked"] * 2}, "layer_types is"),
        ("qwen3", {**WINDOW, "layer_types": "full"}, "layer_types is"),
        ("qwen3", {**WINDOW, "sliding_window": 0, "layer_types": ["sliding_attention"] * 2}, "model.attention.window"),
        ("qwen3", {"layer_types": ["sliding_attention"] * 2}, "layer_types is"),
    ],
)  # fmt: skip
def test_a_configuration_that_no_model_here_has_is_refused_by_name(written, which, settings, told):
    _, folder = written(which)
    change(folder, **settings)
    with pytest.raises(UserError, match=f"run: .*config.json: .*{told}|run: .*theirs: .*{told}"):
        HuggingFace(str(folder))


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_garbage_is_one_line(written, garbage):
    _, folder = written()
    (folder / "config.json").write_bytes(garbage)
    with pytest.raises(UserError, match="config.json"):
        HuggingFace(str(folder))


@pytest.mark.parametrize(
    "harm, told",
    [
        (lambda t: t.pop("model.norm.weight"), r"model\.norm\.weight is not there, by the configuration \(32,\)"),
        (lambda t: t.update({"model.norm.weight": torch.zeros(31)}), r"model\.norm\.weight is \(31,\)"),
        (lambda t: t.update({"score.weight": torch.zeros(1)}), r"score\.weight is \(1,\), by the configuration not"),
        (lambda t: t.update({"model.norm.weight": torch.zeros(32, dtype=torch.int8)}), "of type I8; BF16, F16, F32,"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused_before_they_are_read(written, harm, told):
    _, folder = written()
    tensors = load_file(folder / "model.safetensors")
    harm(tensors)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(UserError, match=told):
        HuggingFace(str(folder))


def test_weights_that_are_not_finite_are_refused(written):
    _, folder = written()
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][3] = torch.nan
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(UserError, match="are not all finite numbers"):
        HuggingFace(str(folder)).weights()


def test_a_head_of_its_own_in_a_tied_model_is_refused(written):
    _, folder = written("gpt2")
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    save_file(tensors, folder / "model.safetensors")
    HuggingFace(str(folder)).weights()
    tensors["lm_head.weight"][0, 0] += 1
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(UserError, match=r"lm_head\.weight is not the embedding, and tie_word_embeddings is true"):
        HuggingFace(str(folder)).weights()


def test_a_pickle_is_never_loaded(written):
    _, folder = written()
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match="holds no model.safetensors"):
        HuggingFace(str(folder))

    class Harm:
        def __reduce__(self):
            return (exit, (1,))

    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(UserError, match=r"pytorch_model\.bin is a pickle, which may run code, and is never loaded"):
        HuggingFace(str(folder))


def test_damaged_weights_are_one_line(written):
    _, folder = written()
    (folder / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{nothing")
    with pytest.raises(UserError, match=r"model\.safetensors cannot be read .*get the files again"):
        HuggingFace(str(folder))


def test_a_tokenizer_with_more_tokens_than_rows_cannot_write(random_model, tmp_path):
    ours = random_model("qwen3", vocab_size=200)
    write(holding(ours), ours, Byte(), tmp_path)
    with pytest.raises(UserError, match="has 257 tokens, the weights have 200"):
        HuggingFace(str(tmp_path)).load(CPU)


def test_what_is_no_folder_and_no_prefix(tmp_path):
    assert opened("runs/mine") is None
    assert opened("C:\\runs\\mine") is None
    with pytest.raises(UserError, match="hf:: expected the name of a model after hf:, got nothing"):
        opened("hf:")
    with pytest.raises(UserError, match="holds no config.json"):
        opened(f"hf:{tmp_path}")
    with pytest.raises(UserError, match="is no folder; name one"):
        opened(f"hf:{tmp_path}/gone")


def test_our_names_are_all_in_the_tables(random_model, shape):
    ours = random_model(shape)
    named = weights(holding(ours), empty(ours.config))
    assert sum(tensor.numel() for tensor in named.values()) == GPT(ours.config).count_parameters()


@pytest.mark.parametrize("sharded", [False, True])
def test_files_may_be_links_as_in_the_hubs_cache(written, tmp_path, sharded):
    _, folder = written()
    if sharded:
        (folder / "model.safetensors").rename(folder / "one.safetensors")
        index = {"weight_map": {"model.norm.weight": "one.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    write_tokenizer(Byte(), folder, 32)
    (tmp_path / "snapshot").mkdir()
    for path in folder.iterdir():
        (tmp_path / "snapshot" / path.name).symlink_to(path)
    model, tokenizer = HuggingFace(str(tmp_path / "snapshot")).load(CPU)
    assert model.config.vocab_size == 257
    assert tokenizer.encode("a") == [97]


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("{")])
def test_a_file_is_named_once(written, harm):
    _, folder = written()
    write_tokenizer(Byte(), folder, 32)
    for name in ("tokenizer.json", "config.json"):
        harm(folder / name)
        with pytest.raises(UserError) as error:
            HuggingFace(str(folder)).tokenizer()
        assert str(error.value).count(str(folder)) == 1
        assert "init" not in str(error.value)
        (folder / name).unlink(missing_ok=True)
