"""`python -m gpt export`: a folder that is whole or not there."""

import ast

import pytest
import torch
import yaml

from gpt.config import ROOT, UserError
from gpt.export import card
from gpt.export.export import ExportSettings, export
from gpt.model.config import GPTConfig
from gpt.run_notes import write_summary

MODEL = GPTConfig(vocab_size=260, context=16, n_layer=1, n_head=2, d_model=8)


@pytest.fixture
def trained(make_run, root):
    settings = {
        "name": "mine",
        "steps": 9,
        "model": MODEL.model_dump(),
        "dataset": {"name": "builtin", "years": [1790, 1800]},
    }
    return make_run(root / "mine", steps=[(1, 2.5), (4, 3.0)], config=MODEL, settings=settings)


def test_the_best_checkpoint_is_written_and_said(trained, root, tmp_path, capsys):
    trained.log({"step": 1, "validation_loss": 2.5, "validation_bits_per_byte": 3.75})
    export(ExportSettings(to=str(tmp_path / "out")), None)
    assert "step 1 (the best checkpoint, validation loss 2.5000)" in capsys.readouterr().out
    there = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"config.json", "generation_config.json", "model.safetensors", "README.md"} <= there
    header, text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8").removeprefix("---\n").split("---\n", 1)
    assert yaml.safe_load(header)["library_name"] == "transformers"
    assert "Validation: 2.5000 nats per token, 3.7500 bits per byte" in text
    assert "the best checkpoint, after step 1, 8 tokens" in text
    assert "dataset.years=[1790, 1800]" in text
    assert "The last 3 rows of the table stand for no token" in text
    assert 'AutoModelForCausalLM.from_pretrained("out")' in text
    assert list(tmp_path.glob(".exporting-*")) == []


def test_a_card_begins_as_the_data_and_tells_no_folders(make_run, root, tmp_path):
    text = {"name": "text", "path": "/home/ada/emma.txt", "validation_path": str(ROOT / "gpt/**/*.py")}
    settings = {"model": MODEL.model_dump(), "dataset": text, "init": "runs/first"}
    run = make_run(root / "mine", config=MODEL, settings=settings)
    run.keep_sample(1, "Emma Woodhouse, handsome, clever")
    export(ExportSettings(to=str(tmp_path / "out")), None)
    told = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert 'tokenizer("Emma Woodhouse,", ' in told
    assert "dataset.path='emma.txt', dataset.validation_path='gpt/**/*.py'" in told
    assert "init: runs/first" in told
    assert "ada" not in told.replace("adamw", "")
    assert str(ROOT) not in told


def test_a_card_tells_its_data_as_the_training_did_and_no_folders(make_run, root, tmp_path):
    """Of a folder of rows the training says where it is."""
    settings = {"model": MODEL.model_dump(), "dataset": {"name": "hub", "path": "/home/ada/rows"}}
    run = make_run(root / "mine", config=MODEL, settings=settings)
    write_summary(run.folder, {"data": "/home/ada/rows; the last 10 % held out"})
    export(ExportSettings(to=str(tmp_path / "out")), None)
    assert "\n- Data: rows; the last 10 % held out\n" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_an_unevaluated_checkpoint_is_the_last(make_run, root, tmp_path, capsys):
    make_run(root / "mine", steps=[(1, None), (4, None)], config=MODEL)
    export(ExportSettings(to=str(tmp_path / "out")), None)
    assert "step 4 (the last checkpoint, not evaluated)" in capsys.readouterr().out
    assert "Validation: these weights were not evaluated" in (tmp_path / "out" / "README.md").read_text(
        encoding="utf-8"
    )


def test_nothing_is_overwritten(trained, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").touch()
    for taken in ("out", "out/notes"):
        with pytest.raises(UserError, match=rf"to: .*{taken} is there already, and an export never overwrites"):
            export(ExportSettings(to=str(tmp_path / taken)), None)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes"]


def test_an_empty_folder_is_taken(trained, tmp_path):
    (tmp_path / "out").mkdir()
    export(ExportSettings(to=str(tmp_path / "out")), None)
    assert (tmp_path / "out" / "config.json").is_file()


@pytest.mark.parametrize("name", ['a "quoted" {name}', "two\nlines", "私", "no utf-8 \udcff"])
def test_the_card_opens_a_folder_of_any_name(name, trained, tmp_path):
    export(ExportSettings(to=str(tmp_path / name)), None)
    text = (tmp_path / name / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    (opened,) = {
        call.args[0].value
        for call in ast.walk(ast.parse(code))
        if isinstance(call, ast.Call) and "from_pretrained" in ast.dump(call.func)
    }
    assert opened == name.replace("\udcff", "?")
    assert text.split("---\n\n")[1].startswith(f"# {' '.join(opened.split())}\n\n")


def test_metrics_that_are_no_numbers_are_not_said(trained, tmp_path):
    trained.log({"step": 1, "validation_loss": 2.5, "validation_bits_per_byte": "harm"})
    export(ExportSettings(to=str(tmp_path / "out")), None)
    assert "Validation: 2.5000 nats per token\n" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_no_name_is_no_folder(trained):
    with pytest.raises(UserError, match="to: expected a folder, got nothing"):
        export(ExportSettings(to=""), None)


def test_what_fails_leaves_nothing(trained, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(card, "written", fail)
    with pytest.raises(Exception, match="to: .*no room is left on the disk"):
        export(ExportSettings(to=str(tmp_path / "out")), None)
    assert {path.name for path in tmp_path.iterdir()} == {"runs"}


def test_a_model_that_no_class_holds_leaves_nothing(make_run, root, tmp_path):
    make_run(root / "mine", config=MODEL.model_copy(update={"logit_softcap": 30.0}))
    with pytest.raises(UserError, match=r"model\.logit_softcap=30\.0"):
        export(ExportSettings(to=str(tmp_path / "out")), None)
    assert not (tmp_path / "out").exists()


def test_transformers_measures_the_loss_that_we_do(tmp_path, build_trained):
    """Fifty updates, and then the validation text in the same windows."""
    transformers = pytest.importorskip("transformers")
    loss, windows = build_trained(tmp_path / "run")
    export(ExportSettings(run=str(tmp_path / "run"), to=str(tmp_path / "out")), None)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for inputs, targets in windows:
            logits = model(inputs).logits.flatten(0, 1)
            total += torch.nn.functional.cross_entropy(logits, targets.flatten(), reduction="sum").item()
            count += int((targets != -100).sum())
    assert total / count == pytest.approx(loss, abs=1e-4)
