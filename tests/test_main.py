"""`python -m gpt`."""

import subprocess
import sys
from importlib import import_module

import pytest

from gpt.__main__ import VERBS
from gpt.cli import compose
from gpt.config import ROOT, Config


def verb(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gpt", *argv], capture_output=True, text=True)


def test_without_a_verb_it_lists_them_and_names_the_scripts() -> None:
    done = verb()
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  bench      training and decoding speed beside transformers\n" in done.stdout
    assert "train.py" in done.stdout
    assert "sample.py" in done.stdout


def test_an_unknown_verb_is_one_line_and_exit_code_2() -> None:
    done = verb("dance", "now")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: dance: there is no such verb; python -m gpt lists those that there are\n"


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_has_its_settings_and_its_task(name: str) -> None:
    module = import_module(VERBS[name].module)
    settings = getattr(module, VERBS[name].settings)
    assert issubclass(settings, Config)
    assert callable(getattr(module, VERBS[name].task))
    assert isinstance(compose(name, [], settings)[0], settings)
    assert (ROOT / "configs" / f"{name}.yaml").is_file()


def test_a_verbs_help_is_a_page_of_its_own() -> None:
    done = verb("bench", "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("-m gpt bench\nMeasure training and cached decoding")
    assert "python -m gpt bench [GROUP=NAME ...]" in done.stdout


def test_a_verbs_mistake_is_one_line_and_exit_code_2() -> None:
    done = verb("bench", "batch_sze=3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: batch_sze: there is no such setting; did you mean batch_size?")
    assert done.stderr.count("\n") == 1
