"""A model of another program is trained on, and a run goes on from it."""

import pytest
import torch
from safetensors.torch import load_file

import gpt
import train
from gpt.cli import compose
from gpt.config import UserError
from gpt.data.tokenizer.byte import Byte
from gpt.interop.hugging_face.architectures import holding
from gpt.interop.hugging_face.writing import write
from gpt.processes import Processes
from gpt.training.origin import find_origin
from gpt.training.settings import TrainSettings

LINE = [
    "dataset=text", "steps=2", "eval_every=2", "batch_size=2", "precision=fp32", "compile=off", "device=cpu",
    "logger=[]",
]  # fmt: skip


@pytest.fixture
def folder(random_model, tmp_path):
    (tmp_path / "theirs").mkdir()
    write(holding(random_model("gpt2")), random_model("gpt2"), Byte(), tmp_path / "theirs")
    (tmp_path / "text.txt").write_text("the quick brown fox " * 200, encoding="utf-8")
    return tmp_path / "theirs"


def settings(folder, *more):
    line = [*LINE, f"dataset.path={folder.parent / 'text.txt'}", f"init=hf:{folder}", *more]
    return compose("train", line, TrainSettings)[0]


def test_the_settings_are_those_of_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    found = compose("train", [*LINE, "dataset.path=text.txt", "init=hf:theirs", "model.dropout=0.25"], TrainSettings)[0]
    assert found.init == f"hf:{folder}"
    assert (found.model.d_model, found.model.context, found.model.position.name) == (32, 32, "learned")
    assert (found.model.vocab_size, found.model.dropout) == (257, 0.25)
    assert found.tokenizer.name == gpt.load("hf:theirs", "cpu").tokenizer.name


def test_it_begins_with_their_weights_and_is_a_run(folder, tmp_path, random_model, capsys):
    train.train(settings(folder, "optimizer.lr=1e-9", "optimizer.adamw_lr=1e-9"), tmp_path / "run")
    found = load_file(tmp_path / "run" / "checkpoints" / "step_00000002" / "model.safetensors")
    for name, tensor in random_model("gpt2").state_dict().items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-7)
    assert gpt.load(tmp_path / "run", "cpu").tokenizer.vocab_size == 257
    assert compose("train", [f"resume={tmp_path / 'run'}", "steps=3"], TrainSettings)[0].model.n_layer == 3


def test_a_longer_context_and_a_larger_vocabulary_grow_the_tables(folder):
    origin = find_origin(settings(folder, "model.context=48", "model.vocab_size=320"), None)
    ((label, text),) = origin.describe()
    assert (label, text.partition("; ")[0]) == ("begins", f"with the weights of hf:{folder}")
    assert "position.table.weight has 48 rows in place of 32: the last 16 are new" in text
    assert "embedding.weight has 320 rows in place of 257: the last 63 are new" in text
    alone = Processes(torch.device("cpu"))
    model = origin.load(gpt.GPT(settings(folder, "model.context=48", "model.vocab_size=320").model), alone)
    assert model.position.table.weight.shape == (48, 32)


def test_a_tokenizer_with_more_tokens_than_rows_grows_the_table(random_model, folder):
    ours = random_model("gpt2", vocab_size=250)
    (folder.parent / "small").mkdir()
    write(holding(ours), ours, Byte(), folder.parent / "small")
    found = settings(folder, f"init=hf:{folder.parent / 'small'}")
    assert found.model.vocab_size == 257
    assert "257 rows in place of 250" in find_origin(found, None).describe()[0][1]


def test_what_cannot_be_is_one_line(folder):
    with pytest.raises(UserError, match=r"init: .*the names and shapes of the configuration, blocks\.3"):
        find_origin(settings(folder, "model.n_layer=4"), None)
    with pytest.raises(UserError, match=r"init: tokenizer\.name is .* in hf:.*leave it out"):
        settings(folder, "tokenizer=char")
    with pytest.raises(UserError, match=r"init: .*gone is no folder; name one"):
        settings(folder, f"init=hf:{folder}/gone")
