"""data/prepare.py as a user runs it: a real process, from another directory."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from gpt.config import ROOT

TINY = ["dataset.years=[1790,1800]", "tokenizer=byte", "model.n_layer=1", "model.n_head=1", "model.d_model=16"]


@pytest.fixture
def own_text(tmp_path):
    """A folder with a text of its own, whose tokens are gone from the checkout when the test is done."""
    (tmp_path / "cat.txt").write_text("吾輩は猫である。名前はまだ無い。\n" * 200, encoding="utf-8")
    there = set((ROOT / "data").glob("text-*"))
    yield tmp_path
    for folder in set((ROOT / "data").glob("text-*")) - there:
        if json.loads((folder / "prepared.json").read_text())["train"]["text_bytes"] == 8820:
            shutil.rmtree(folder)


def prepare(*arguments, cwd, **more):
    command = [sys.executable, str(ROOT / "data" / "prepare.py"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=300, **more)


def test_it_shows_the_text_and_the_command_that_trains_on_it(tmp_path):
    process = prepare(*TINY, "steps=50", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert "US presidential addresses of 1790-1800" in process.stdout
    assert "F│e│l│l│o│w│-│C│i│t│i│z│e│n│s" in process.stdout
    assert re.search(r"^What to know$", process.stdout, re.M)
    last = process.stdout.splitlines()[-1]
    assert last == f"To train: python {ROOT / 'train.py'} '{TINY[0]}' {' '.join(TINY[1:])} steps=50"
    assert "\x1b" not in process.stdout
    assert list(tmp_path.iterdir()) == [], "tokens lie in the checkout, and nothing here"


def test_own_text_in_the_c_locale(own_text):
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    arguments = ["dataset=text", "dataset.path=cat.txt", *TINY[1:]]
    process = prepare(*arguments, cwd=own_text, env=environment)
    assert process.returncode == 0, process.stderr
    assert process.stdout.isascii()
    assert "<E5>|<90>|<BE>|<E8>|<BC>|<A9>" in process.stdout  # 吾輩
    assert "\\u2588" not in process.stdout
    assert "吾│輩│は│猫" in prepare("dataset=text", "dataset.path=cat.txt", "tokenizer=char", cwd=own_text).stdout


def test_a_text_too_short_is_one_line(tmp_path):
    (tmp_path / "short.txt").write_text("short")
    process = prepare("dataset=text", "dataset.path=short.txt", *TINY[1:], cwd=tmp_path)
    assert process.returncode == 2
    assert re.fullmatch(r"error: .*context.*\n", process.stderr)
    assert process.stdout == ""


def test_a_misspelt_setting_is_one_line(tmp_path):
    process = prepare("model.n_layr=1", cwd=tmp_path)
    assert process.returncode == 2
    assert re.fullmatch(r"error: model\.n_layr: .*model\.n_layer.*\n", process.stderr)


def test_help_is_a_page_of_its_own(tmp_path):
    process = prepare("--help", cwd=tmp_path)
    assert process.returncode == 0
    assert process.stdout.startswith("data/prepare.py\nLook at a text before training on it")
    assert "python data/prepare.py [GROUP=NAME ...]" in process.stdout


@pytest.mark.parametrize("no_color", [True, False])
def test_colour_in_a_terminal_unless_it_is_not_wanted(tmp_path, no_color):
    """The excerpt's tokens have backgrounds in a terminal, and bars where NO_COLOR is set."""
    main, other = pytest.importorskip("pty").openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **({"NO_COLOR": "1"} if no_color else {})}
    environment = {key: value for key, value in environment.items() if no_color or key != "NO_COLOR"}
    command = [sys.executable, str(ROOT / "data" / "prepare.py"), *TINY]
    with subprocess.Popen(command, stdout=other, stderr=subprocess.DEVNULL, cwd=tmp_path, env=environment) as process:
        os.close(other)
        text = b""
        try:
            while block := os.read(main, 1 << 16):
                text += block
        except OSError:  # Linux's way to say that the other end is closed
            pass
    os.close(main)
    assert process.returncode == 0
    assert ("F│e│l│l│o│w" in text.decode()) == no_color
    assert ("\x1b[38;5;" in text.decode()) == (not no_color)


def test_the_script_is_short():
    assert len((ROOT / "data" / "prepare.py").read_text(encoding="utf-8").splitlines()) < 60
