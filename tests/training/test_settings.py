import pytest
import torch

from gpt.config import UserError, parse
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokenizer.char import CharConfig
from gpt.device import Precision
from gpt.model.config import GPTConfig
from gpt.training.settings import TrainSettings

CHOICES = {
    "dataset": {"name": "builtin"},
    "tokenizer": {"name": "byte"},
    "optimizer": {"name": "adamw"},
    "schedule": {"name": "linear"},
}


def settings(**given) -> TrainSettings:
    return parse(TrainSettings, {**CHOICES, **given})


@pytest.mark.parametrize("accumulate", [3, 16])
def test_a_batch_that_does_not_divide_is_refused(accumulate):
    with pytest.raises(UserError, match=f"accumulate: batch_size 8 is not divisible by accumulate {accumulate}"):
        settings(batch_size=8, accumulate=accumulate)
    assert settings(batch_size=8, accumulate=4).accumulate == 4


def test_a_budget_is_checked_at_once_and_told_in_seconds():
    with pytest.raises(UserError, match="budget: 'soon' is no time above 0"):
        settings(budget="soon")
    assert settings(budget="2min").horizon().budget == 120
    assert settings(steps=7).horizon().budget is None
    assert settings(steps=7).horizon().steps == 7


def test_what_is_stored_is_the_model_as_it_was_built():
    chosen = settings(model={"d_model": 8, "n_head": 2}, seed=7)
    stored = chosen.for_model(chosen.model.for_vocabulary(257))
    assert stored["model"]["vocab_size"] == 257
    assert parse(GPTConfig, stored["model"], "model") == chosen.model.for_vocabulary(257)
    assert {**stored, "model": None} == {**chosen.model_dump(), "model": None}
    assert stored["seed"] == 7


def test_that_a_run_was_resumed_is_not_stored():
    chosen = settings(resume="/somewhere", init="/elsewhere")
    stored = chosen.for_model(chosen.model)
    assert (stored["resume"], stored["init"]) == (None, "/elsewhere")


def folder_of(tmp_path, train: str, validation: str):
    (tmp_path / "train.txt").write_text(train)
    (tmp_path / "validation.txt").write_text(validation)
    where = {"path": str(tmp_path / "train.txt"), "validation_path": str(tmp_path / "validation.txt")}
    return {"dataset": {"name": "text", **where}, "model": {"context": 8, "d_model": 8, "n_head": 2}}


def test_data_are_prepared_and_evaluations_can_be_capped(tmp_path):
    given = folder_of(tmp_path, "a" * 100, "b" * 50)
    data = settings(**given).prepare_data(tmp_path / "data")
    assert (len(data.train), len(data.validation)) == (101, 51)
    data = settings(**given, eval_tokens=20).prepare_data(tmp_path / "data")
    assert (len(data.train), len(data.validation)) == (101, 20)
    assert data.description.endswith("; evaluations cover the first 20 of 51 validation tokens")
    data = settings(**given, eval_tokens=51).prepare_data(tmp_path / "data")
    assert len(data.validation) == 51
    assert "evaluations" not in data.description
    assert len(list((tmp_path / "data").iterdir())) == 1


def test_a_tokenizer_and_a_fingerprint_reach_the_preparation(tmp_path):
    given, seen = folder_of(tmp_path, "a" * 100, "b" * 50), []
    tokenizer = CharConfig().build(lambda _: iter([["abc"]]))
    data = settings(**given).prepare_data(tmp_path / "data", tokenizer, seen.append)
    assert (data.tokenizer.name, data.tokenizer.vocab_size) == ("char", tokenizer.vocab_size)
    assert seen == [data.fingerprint]


@pytest.mark.parametrize("packing, separator", [("stream", None), ("documents", 256)])
def test_documents_are_told_apart_by_the_end_of_text(packing, separator):
    chosen = settings(packing=packing)
    assert chosen.separator(ByteConfig().build(lambda _: iter([["abc"]]))) == separator
    assert settings().packing == "stream"


def test_documents_cannot_be_told_apart_without_an_end_of_text(tmp_path):
    given = {**folder_of(tmp_path, "ab" * 50, "b" * 50), "tokenizer": {"name": "char"}}
    with pytest.raises(UserError, match=r"^packing: .*tokenizer=char none; take packing=stream, .* or tokenizer=byte$"):
        settings(**given, packing="documents").prepare_data(tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
    assert settings(**given).prepare_data(tmp_path / "data").tokenizer.end_of_text is None


def test_a_model_that_the_device_cannot_train_is_refused():
    fp32 = Precision("fp32", "as set", torch.device("cpu"))
    settings().check_model(fp32)
    with pytest.raises(UserError, match=r"odd"):
        settings(model={"head_dim": 7}).check_model(fp32)
    with pytest.raises(UserError, match=r"model: weights, gradients and optimizer take .* GB"):
        settings(model={"n_layer": 1000, "d_model": 99_996}).check_model(fp32)
    with pytest.raises(
        UserError, match=r"^model\.attention\.backend: cudnn cannot attend in float32 on cpu; take auto"
    ):
        settings(model={"attention": {"name": "sdpa", "backend": "cudnn"}}).check_model(fp32)
    fp16 = Precision("fp16", "as set", torch.device("cpu"))
    with pytest.raises(UserError, match=r"^precision: with parallel=fsdp .*; take bf16 or fp32, or parallel=ddp"):
        settings(parallel="fsdp").check_model(fp16, processes=2)


@pytest.mark.parametrize(
    "train, validation, more, message",
    [
        ("a" * 14, "b" * 50, {}, "model.context=8: the train split has 15 tokens, where 16 are needed"),
        ("a" * 100, "b" * 7, {}, "model.context=8: the validation split has 8 tokens, where 9 are needed"),
        (
            "a" * 100,
            "b" * 50,
            {"eval_tokens": 8},
            "eval_tokens: 8 do not fill one window of model.context 8",
        ),
        ("a" * 100, "b" * 50, {"vocab_size": 256}, "model.vocab_size: 256 is less than the tokenizer's 257"),
    ],
)
def test_nothing_is_kept_of_data_that_the_run_cannot_use(train, validation, more, message, tmp_path):
    given = folder_of(tmp_path, train, validation)
    given["model"] |= {key: value for key, value in more.items() if key != "eval_tokens"}
    given |= {key: value for key, value in more.items() if key == "eval_tokens"}
    with pytest.raises(UserError, match=message):
        settings(**given).prepare_data(tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
