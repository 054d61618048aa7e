"""The command in a model card gives the settings that it was made of."""

import shlex

import pytest

from gpt.cli import compose
from gpt.export.command import command
from gpt.training.settings import TrainSettings


@pytest.mark.parametrize(
    "line, typed",
    [
        ([], ""),
        (["steps=7", "clip=0.5"], "steps=7 clip=0.5"),
        (["optimizer=adamw", "optimizer.lr=0.01"], "optimizer=adamw optimizer.lr=0.01"),
        (["model=gpt2", "dataset=text", "dataset.path=a b.txt", "dataset.separator=\\n\\n"], None),
        (["dataset.years=[1790,1800]", "model/attention=sliding_window", "save_every=10min"], None),
        (["experiment=adamw_linear", "eval_tokens=5000"], None),
    ],
)
def test_it_composes_to_the_same(line, typed):
    settings, _ = compose("train", line, TrainSettings)
    program, script, *words = shlex.split(command(settings.model_dump()))
    assert (program, script) == ("python", "train.py")
    assert (
        compose("train", words, TrainSettings)[0].model_copy(update={"name": settings.name, "logger": settings.logger})
        == settings
    )
    if typed is not None:
        assert " ".join(words) == typed
