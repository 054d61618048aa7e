"""`python -m gpt`."""

import subprocess
import sys


def verb(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gpt", *argv], capture_output=True, text=True)


def test_without_a_verb_it_lists_them_and_names_the_scripts() -> None:
    done = verb()
    assert (done.returncode, done.stderr) == (0, "")
    assert "train.py" in done.stdout
    assert "sample.py" in done.stdout


def test_an_unknown_verb_is_one_line_and_exit_code_2() -> None:
    done = verb("dance", "now")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: dance: there is no such verb; python -m gpt lists those that there are\n"
