import pytest

from gpt.insight.bench.peer import NoPeerError
from gpt.insight.bench.shape import kind_of, surplus
from gpt.interop.hugging_face.architecture import hidden_width
from gpt.model.gpt import GPT


def test_each_kind_is_known_by_its_parts(kind, shape):
    assert kind_of(GPT(shape(kind)), "litgpt") == kind


@pytest.mark.parametrize(
    "settings, reason",
    [
        ({"feedforward": {"name": "relu2"}}, "feedforward relu2 and qk_norm true"),
        ({"position": {"name": "alibi"}}, "position alibi"),
        ({"norm": "layernorm"}, "layernorm"),
        ({"norm_gain": False}, "norm_gain=false"),
        ({"logit_softcap": 15.0}, "logit_softcap"),
        ({"attention": {"name": "linear"}, "n_kv_head": None}, "model/attention=linear"),
    ],
)
def test_a_shape_that_no_model_has(settings, reason, shape):
    with pytest.raises(NoPeerError, match=f"^litgpt has no model with .*{reason}"):
        kind_of(GPT(shape("qwen3", **settings)), "litgpt")


def test_gpt2_with_fewer_key_heads_is_none(shape):
    with pytest.raises(NoPeerError, match="n_kv_head"):
        kind_of(GPT(shape("gpt2", n_kv_head=1)), "transformers")


def test_how_many_parameters_a_peer_has(shape):
    """SwiGLU of 8/3 of 16, rounded up to 64."""
    model = GPT(shape("llama"))
    count = model.count_parameters()
    assert hidden_width(model) == 64
    assert surplus(count, model) == f"{count:,} parameters"
    assert surplus(count + 1200, model).endswith(", 1,200 more")
    assert surplus(count - 3, model).endswith(", 3 fewer")
