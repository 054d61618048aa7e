"""The command that repeats a run composes to the very same settings."""

import shlex

import pytest

from gpt.cli import compose
from gpt.config import ROOT
from gpt.training.command import command
from gpt.training.settings import TrainSettings

RECIPES = sorted(file.stem for file in (ROOT / "configs" / "experiment").glob("*.yaml"))
HOSTILE = """a "b" 'c' ${d} \\${e} \\\\ #1, [x]=(y): 私 $(rm) `ls` !! ~ \n\t"""


def again(settings):
    """As a shell, and then train.py, read it."""
    python, script, *argv = shlex.split(shlex.join(command(settings.model_dump())))
    assert (python, script) == ("python", "train.py")
    return compose("train", argv, TrainSettings)[0]


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_recipe(recipe):
    settings, _ = compose("train", [f"experiment={recipe}"], TrainSettings)
    assert again(settings) == settings


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["model=gpt2", "optimizer=adamw", "optimizer.lr=3e-4", "schedule=cosine", "device=cpu", "debug=true"],
        ["budget=5min", "save_every=90s", "accumulate=auto", "logger=[]", "name=null", "dataset.years=[1801,1900]"],
        [
            "model/attention=sliding_window",
            "model.attention.window=32",
            "model.attention.layers=SSSL",
            "tokenizer=byte",
        ],
        ["logger=[wandb,console]", "logger.wandb.tags=[a,'b c',null_,'1']", "logger.wandb.group='x \\${y}'"],
        ["dataset=text", "dataset.path=a b/*.txt", "dataset.separator=\\n\\t\\\\n", "dataset.column=text"],
        ["dataset=text", f"dataset.path={HOSTILE}", f"name={HOSTILE}"],
        ["model.logit_softcap=15", "clip=0", "model.vocab_size=5000", "model.n_kv_head=null"],
    ],
    ids=" ".join,
)
def test_whatever_was_typed(argv):
    settings, _ = compose("train", argv, TrainSettings)
    assert again(settings) == settings


def test_it_says_no_more_than_it_must():
    settings, _ = compose("train", ["optimizer=adamw", "steps=20", "seed=1337"], TrainSettings)
    assert command(settings.model_dump()) == ["python", "train.py", "optimizer=adamw", "steps=20"]


def test_a_run_that_begins_with_anothers_weights(tmp_path, make_run):
    """What it took from there is typed, also where it is train.py's own: the other run may have another value."""
    base, _ = compose("train", ["tokenizer=byte", "model.dropout=0.5", "model.d_model=24"], TrainSettings)
    make_run(tmp_path / "other", settings=base.for_model(base.model.for_vocabulary(257)))
    argv = [f"init={tmp_path / 'other'}", "model.dropout=0", "optimizer.lr=0.5"]
    settings, _ = compose("train", argv, TrainSettings)
    assert (settings.model.dropout, settings.model.d_model) == (0, 24)
    assert again(settings) == settings
