"""A run that is really trained, in two seconds."""

import pytest

import train
from gpt.cli import compose
from gpt.config import ROOT
from gpt.data.batches import evaluation_windows
from gpt.run import load
from gpt.training.settings import TrainSettings


@pytest.fixture
def build_trained(tmp_path):
    """Trains into a folder; the validation loss of its weights, and the windows that it was measured on."""

    def build(folder):
        text = tmp_path / "text.txt"
        text.write_text("the quick brown fox jumps over the lazy dog. " * 200, encoding="utf-8")
        line = [
            "dataset=text", f"dataset.path={text}", "tokenizer=byte", "steps=50", "eval_every=50", "batch_size=4",
            "model.context=32", "model.n_layer=2", "model.d_model=48", "precision=fp32",
            "compile=off", "device=cpu", "logger=[]",
        ]  # fmt: skip
        settings, _ = compose("train", line, TrainSettings)
        train.train(settings, folder)
        run = load(folder, "cpu", "fp32")
        data = settings.prepare_data(ROOT / "data")
        return run.checkpoint.state.validation_loss, evaluation_windows(data.validation, 32, 4)

    return build
