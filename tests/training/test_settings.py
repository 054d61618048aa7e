import pytest

from gpt.config import UserError, parse
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
    with pytest.raises(UserError, match="budget: 'soon' is no duration"):
        settings(budget="soon")
    assert settings(budget="2min").budget_seconds == 120
    assert settings().budget_seconds is None


def test_what_is_stored_is_the_model_as_it_was_built():
    chosen = settings(model={"d_model": 8, "n_head": 2}, seed=7)
    stored = chosen.for_model(chosen.model.for_vocabulary(257))
    assert stored["model"]["vocab_size"] == 257
    assert parse(GPTConfig, stored["model"], "model") == chosen.model.for_vocabulary(257)
    assert {**stored, "model": None} == {**chosen.model_dump(), "model": None}
    assert stored["seed"] == 7
