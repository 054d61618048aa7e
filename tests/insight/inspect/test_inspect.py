"""The verb, from what is typed to what is left behind."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from matplotlib.image import imread

from gpt.config import UserError
from gpt.insight.inspect.inspect import beside_checkpoints, inspect
from gpt.insight.inspect.settings import InspectSettings
from gpt.run import load

SENTENCE = "私は機械学習が大好きです"
FILES = ["attention_layer_01.png", "attention_layer_02.png", "heads.png", "inspect.html", "surprise.png"]


@pytest.mark.parametrize("name", ["byte", "bpe", "char"])
def test_the_sentence_from_what_is_typed_to_the_last_line(run_with, typed, name):
    folder = run_with(name)
    checkpoints = sorted((folder / "checkpoints").rglob("*"))
    code, out, err = typed(f"run={folder}", f"prompt={SENTENCE}", "device=cpu")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"open '{folder}/inspect/inspect.html'"
    assert all(character in out for character in SENTENCE)
    assert sorted(file.name for file in (folder / "inspect").iterdir()) == FILES
    assert SENTENCE in (folder / "inspect" / "inspect.html").read_text(encoding="utf-8")
    assert imread(folder / "inspect" / "heads.png").shape[1] > 600
    assert sorted((folder / "checkpoints").rglob("*")) == checkpoints
    load(folder, "cpu", "fp32")  # which compares the checksums


@pytest.mark.parametrize(
    "name, settings, error",
    [
        ("byte", ["run=/nowhere"], "run: /nowhere is not there; name the folder of a run, or latest"),
        (
            "char",
            ["prompt="],
            "prompt: it is empty, and this tokenizer has no end-of-text to start from; give a prompt",
        ),
        ("char", ["prompt=私é"], "prompt: "),
        (
            "byte",
            ["to=/dev/null/x"],
            "to: /dev/null/x: /dev/null is no folder that can be written to; name another one",
        ),
        ("byte", ["top=0"], "top: "),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(run_with, typed, name, settings, error):
    folder = run_with(name)
    code, out, err = typed(f"run={folder}", "device=cpu", *settings)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {error}")
    assert err.count("\n") == 1
    assert not (folder / "inspect").exists()


def test_as_a_program_of_its_own_without_a_terminal(run_with):
    folder = run_with("byte")
    command = [sys.executable, "-m", "gpt", "inspect", f"run={folder}", "prompt=私 [b] $1", "device=cpu"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "  私 1/3 –  私 2/3 " in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stdout.splitlines()[-1] == f"open '{folder}/inspect/inspect.html'"


def test_another_folder_and_another_text_in_its_place(run_with, tmp_path, capsys):
    folder = run_with("byte")
    for prompt in ("first", "second"):
        inspect(InspectSettings(run=str(folder), prompt=prompt, to=str(tmp_path / "a" / "b"), device="cpu"), None)
        assert f"<h1>{prompt}</h1>" in (tmp_path / "a" / "b" / "inspect.html").read_text()
        assert capsys.readouterr().out.endswith("/a/b/inspect.html\n")
    assert sorted(file.name for file in (tmp_path / "a" / "b").iterdir()) == FILES
    assert not (folder / "inspect").exists()


def test_a_checkpoints_folder_stays_as_it_was_saved(run_with):
    folder = run_with("byte")
    point = next((folder / "checkpoints").iterdir())
    assert beside_checkpoints(load(folder, "cpu")) == folder / "inspect"
    assert beside_checkpoints(load(point, "cpu")) == folder / "inspect"
    alone = point.rename(folder / "alone")
    assert beside_checkpoints(load(alone, "cpu")) == folder / "inspect"


def test_a_link_out_of_the_runs_folder_is_refused(run_with, tmp_path):
    folder = run_with("byte")
    (tmp_path / "elsewhere").mkdir()
    (folder / "inspect").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link out of the run's folder"):
        inspect(InspectSettings(run=str(folder), prompt="a", device="cpu"), None)
    assert not any((tmp_path / "elsewhere").iterdir())


def test_another_programs_folder_stays_as_it_is(tmp_path):
    run = SimpleNamespace(folder=tmp_path / "theirs", checkpoint=None)
    with pytest.raises(UserError, match=r"to: .*theirs is another program's, and stays as it is; name a folder by to="):
        beside_checkpoints(run)
