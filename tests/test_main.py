"""`python -m gpt`."""

import subprocess
import sys
from importlib import import_module

import pytest

from gpt.__main__ import VERBS, with_word, with_words
from gpt.cli import compose
from gpt.config import ROOT, Config, UserError, variant_names

STUDIES = ", ".join(variant_names("gpt.insight.study"))


def verb(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gpt", *argv], capture_output=True, text=True)


def test_without_a_verb_it_lists_them_and_names_the_scripts() -> None:
    done = verb()
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  bench      speed of training and decoding beside other libraries, and time to a loss\n" in done.stdout
    assert "\n  study NAME theory measured" in done.stdout
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
    required = ["to=somewhere"] if name == "export" else []
    assert isinstance(compose(name, required, settings)[0], settings)
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


@pytest.mark.parametrize(
    "argv, given",
    [
        (["scaling", "study.trials=100"], ["study=scaling", "study.trials=100"]),
        (["seed=3", "scaling"], ["seed=3", "study=scaling"]),
        (["study=mask", "--cfg"], ["study=mask", "--cfg"]),
        (["-m", "scaling,mask"], ["-m", "study=scaling,mask"]),
        (["--help"], ["--help"]),
        (["mask", "-h"], ["study=mask", "-h"]),
        (["mask", "to=mask scaling"], ["study=mask", "to=mask scaling"]),
    ],
)
def test_a_plain_word_picks_from_the_verbs_choice(argv: list[str], given: list[str]) -> None:
    assert with_word(argv, "study") == given


def test_plain_words_are_a_list_also_where_a_folder_has_a_sign_in_its_name(tmp_path) -> None:
    (tmp_path / "a=b").mkdir()
    assert with_words([], "runs") == []
    assert with_words(["-h", "to=x.csv"], "runs") == ["-h", "to=x.csv"]
    given = with_words(["one", "to=x.csv", f"{tmp_path}/a=b", "it's, x"], "runs")
    assert given == ["to=x.csv", f"runs=[one,'{tmp_path}/a=b','it\\'s, x']"]


@pytest.mark.parametrize("argv", [[], ["seed=3"], ["--cfg"], ["mask", "scaling"], ["mask", "study=scaling"]])
def test_one_word_is_needed(argv: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        with_word(argv, "study")
    assert str(caught.value) == f"study: name one, as in python -m gpt study NAME; there are {STUDIES}"


@pytest.mark.parametrize(
    "word, meant", [("scalin", "did you mean scaling? "), ("", ""), ("私", ""), ("./mask/", "did you mean mask? ")]
)
def test_an_unknown_word_is_told_with_those_that_there_are(word: str, meant: str) -> None:
    with pytest.raises(UserError) as caught:
        with_word(["seed=1", word], "study")
    assert str(caught.value) == f"study: there is no {word!r}; {meant}there are {STUDIES}"


@pytest.mark.parametrize("argv", [["study"], ["study", "scalin"]])
def test_a_missing_or_unknown_word_is_one_line_and_exit_code_2(argv: list[str]) -> None:
    done = verb(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: study: ")
    assert done.stderr.endswith(f"there are {STUDIES}\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("argv", [["--help"], ["mask", "--help"]])
def test_help_with_and_without_the_word(argv: list[str]) -> None:
    done = verb("study", *argv)
    assert (done.returncode, done.stderr) == (0, "")
    assert "study.keys=64" in done.stdout
    assert "study.context=32" in done.stdout


def test_a_plain_word_is_a_mistake_where_a_verb_takes_none() -> None:
    done = verb("bench", "baby")
    assert done.returncode == 2
    assert done.stderr.startswith("error: baby: a setting is written key=value")
