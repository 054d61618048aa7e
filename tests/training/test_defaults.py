"""configs/ read without hydra gives what hydra composes."""

import pytest

from gpt.cli import compose
from gpt.training.defaults import composed, default_settings, variant_defaults
from gpt.training.settings import TrainSettings


def test_the_defaults_are_those_that_hydra_composes():
    assert default_settings() == compose("train", [], TrainSettings)[0].model_dump()


@pytest.mark.parametrize(
    "choice, name, key, value",
    [
        ("optimizer", "adamw", "lr", 0.002),
        ("model.attention", "sliding_window", "sinks", 4),
        ("logger.wandb", "wandb", "project", "tiny-gpt"),
        ("optimizer", "../train", "seed", None),
        ("nowhere", "x", "y", None),
        ("", "train", "seed", None),
    ],
)
def test_a_variants_own_settings(choice, name, key, value):
    assert variant_defaults(choice, name).get(key) == value


def test_what_a_list_names_stands_together():
    assert composed("", "train")["logger"] == {"console": {"name": "console"}}
