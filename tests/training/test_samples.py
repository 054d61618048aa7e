"""What a model writes while it trains, and where such a text begins."""

import pytest
import torch
from safetensors.torch import load_file

from gpt.run_notes import read_samples
from gpt.training import samples as module
from gpt.training.logger import Logger
from gpt.training.samples import first_words
from gpt.training.trainer import Rhythm


class Reader(Logger):
    def __init__(self):
        self.read = []

    def sample(self, step, text):
        self.read.append((step, text))


def test_samples_are_written_with_each_evaluation_for_who_wants_them(build_trainer, monkeypatch):
    monkeypatch.setattr(module, "SHARE", -1.0)
    trainer, _ = build_trainer(steps=12)
    reader = Reader()
    trainer.loggers.loggers.append(reader)
    trainer.fit()
    assert reader.read == [(5, "a sample"), (10, "a sample"), (12, "a sample")]
    assert read_samples(trainer.run.folder, until=99) == reader.read


@pytest.mark.parametrize("share, steps", [(1e9, [5, 10, 12]), (-1.0, [12])])
def test_samples_that_no_logger_wants_take_a_share_of_the_time(build_trainer, monkeypatch, share, steps):
    """As many as it allows, and the last one always; without a validation split too."""
    monkeypatch.setattr(module, "SHARE", share)
    trainer, _ = build_trainer(steps=12, evaluate=False)
    trainer.fit()
    assert [sample.step for sample in read_samples(trainer.run.folder, until=99)] == steps
    assert trainer.run.sample == (12, "a sample")


def test_a_sample_that_fails_does_not_end_the_training(build_trainer):
    trainer, _ = build_trainer(steps=5)
    trainer.samples.write = lambda _: 1 / 0
    with pytest.warns(UserWarning, match="step 5: no sample is written: division by zero"):
        trainer.fit()
    assert trainer.run.last.state.step == 5


def test_samples_change_no_weights(build_trainer, build_update):
    """With dropout, and a text that draws random numbers before each of the next updates."""
    weights = []
    for name in ("quiet", "loud"):
        trainer, _ = build_trainer(name=name, steps=10, rhythm=Rhythm(1, 2, 7), dropout=0.5)
        trainer.loggers.loggers.append(Reader() if name == "loud" else Logger())
        trainer.samples.write = lambda model: str(torch.rand(3))
        trainer.fit()
        weights.append(load_file(trainer.run.last.folder / "model.safetensors"))
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


@pytest.mark.parametrize(
    "text, words",
    [
        ("First Citizen:\nBefore", "First Citizen:"),
        ("\n \r\n  a line of several words", "a line of several"),  # 20 characters at most, and no half words
        ("a line of exactly 20", "a line of exactly 20"),
        ("吾輩は猫である。名前はまだ無い。どこで生れたか", "吾輩は猫である。名前はまだ無い。どこで生"),
        ("x" * 100, "x" * 20),
        (" \n\n", ""),
    ],
)
def test_the_first_words_make_a_prompt(text, words, written):
    assert first_words(written(text.encode())) == words


def test_documents_that_are_no_longer_than_a_prompt_need_none(written):
    ids = [*b"emma", 256, *b"olivia", 256, *b"ava", 256]
    assert first_words(written(ids)) == ""
    assert first_words(written([*b"the first document has words", 256, *b"other"])) == "the first document"
