import pytest
import yaml

from gpt.cli import compose
from gpt.config import ROOT, UserError
from gpt.insight.bench.settings import BenchSettings


def composed(*overrides: str) -> BenchSettings:
    return compose("bench", overrides, BenchSettings)[0]


def test_the_yaml_lists_every_setting_with_its_default():
    content = yaml.safe_load((ROOT / "configs" / "bench.yaml").read_text(encoding="utf-8"))
    fields = BenchSettings.model_fields
    plain = {k: f.default for k, f in fields.items() if k not in ("model", "optimizer")}
    assert {k: v for k, v in content.items() if k != "defaults"} == plain


def test_the_sizes_that_are_left_open():
    """After a prompt of 8 a context of 256 takes 128 more, one of 128 only 120; 4,096 is train.py's vocabulary."""
    settings = composed()
    assert (settings.shape.vocab_size, settings.prompt_tokens, settings.new_tokens) == (4096, 8, 128)
    assert composed("model.context=128").new_tokens == 120
    settings = composed("model.context=4", "model.vocab_size=65")
    assert (settings.shape.vocab_size, settings.prompt_tokens, settings.new_tokens) == (65, 2, 2)
    settings = composed("model=gpt2", "max_new_tokens=1000")
    assert (settings.prompt_tokens, settings.new_tokens) == (8, 1000)


def test_the_default_vocabulary_is_that_of_the_default_tokenizer():
    content = yaml.safe_load((ROOT / "configs" / "tokenizer" / "bpe.yaml").read_text(encoding="utf-8"))
    assert composed().shape.vocab_size == content["vocab_size"]


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["max_new_tokens=249"], "max_new_tokens: 249 after a prompt of 8 exceed model.context 256; take at most 248"),
        (["model.context=1"], "model.context: 1 leaves no room"),
        (["batch_size=8", "accumulate=3"], "accumulate: batch_size 8 is not divisible by accumulate 3"),
        (["decode_batch=[]"], "decode_batch: "),
        (["decode_batch=[0]"], "decode_batch.0: "),
        (["peers=[nanogpt]"], "peers.0: "),
        (["recipes=[nanogpt]"], "recipes: there is no 'nanogpt'; did you mean nanogpt_cpu? there are adamw_linear, "),
        (["races=[]"], "races: "),
        (["repeat=3"], "repeat: there is no such setting; did you mean repeats"),
        (["seconds=0"], "seconds: "),
    ],
)
def test_a_mistake_is_one_line(overrides, message):
    with pytest.raises(UserError) as caught:
        composed(*overrides)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_off_is_a_word():
    assert composed("compile=off").compile == "off"
    assert composed("peers=[]").peers == []


def test_overrides_are_taken_as_they_are_typed():
    typed = "dataset=text dataset.path=notes, [old].txt"
    assert composed(f"overrides={typed}").overrides == typed
