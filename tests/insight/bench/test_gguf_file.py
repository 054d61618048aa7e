from gpt.insight.bench.gguf_file import header, tensors
from gpt.model.gpt import GPT


def test_all_weights_are_in_it_once(kind, shape):
    model = GPT(shape(kind))
    named = dict(tensors(model, kind))
    assert sum(tensor.numel() for tensor in named.values()) == model.count_parameters()
    assert ("output.weight" in named) == (model.head is not None)


def test_biases_that_the_architecture_has_are_zeros(shape):
    """Of qkv 48, out 16, input 64, output 16, and of three layer norms 48."""
    model = GPT(shape("gpt2", bias=False))
    biases = {name: tensor for name, tensor in tensors(model, "gpt2") if name.endswith("bias")}
    assert sum(tensor.numel() for tensor in biases.values()) == 48 + 16 + 64 + 16 + 3 * 16
    assert not any(tensor.any() for tensor in biases.values())


def test_the_header_has_the_sizes(shape):
    sizes = header(GPT(shape("qwen3", norm_eps=1e-4)))
    assert (sizes["attention.head_count"], sizes["attention.head_count_kv"]) == (2, 1)
    assert sizes["attention.key_length"] == sizes["rope.dimension_count"] == 12
    assert sizes["attention.layer_norm_rms_epsilon"] == 1e-4
    assert (sizes["feed_forward_length"], sizes["rope.freq_base"]) == (64, 10000.0)
    assert "rope.freq_base" not in header(GPT(shape("gpt2")))
