"""Some hundred folders from a stranger, opened in every way; `python tests/hostile.py 5000` tries thousands."""

import os
import pickle
import re
import subprocess
import sys
import time

import hostile
import pytest
import torch
from hostile import WAYS, campaign, check_line, in_turn, prepared, sample_aside, table, try_one
from mutations import BASES, KINDS, Harm, build_base, make_case

from gpt.config import UserError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs pipes, signals and limits of Unix")

PARTS = 4
"""In which the folders are tried, side by side where there are cores for it."""
FOLDERS = 2 * len(KINDS)
"""Of a part: each kind twice."""


@pytest.mark.parametrize("part", range(PARTS))
def test_each_folder_opens_right_or_is_refused_in_one_line(part, tmp_path):
    outcomes = list(campaign(range(part * FOLDERS, (part + 1) * FOLDERS), tmp_path))
    assert [(o.case.number, o.case.kind, o.way, o.wrong) for o in outcomes if o.wrong] == []
    assert len(outcomes) == FOLDERS * len(WAYS)
    assert {o.case.kind for o in outcomes} == set(KINDS)
    for way in ("load", "resume=", "init="):
        refused = sum(bool(o.refused) for o in outcomes if o.way == way)
        assert 5 < refused < FOLDERS, f"{way}: {refused} refused, so this tries nothing"
    assert table(outcomes)[-1].split()[:2] == ["all", str(FOLDERS)]


def test_sample_py_refuses_in_one_line_and_with_exit_code_2(tmp_path):
    for name in BASES:
        build_base(name, tmp_path / "bases" / name)
    for number in (3, list(KINDS).index("tensors: declared sizes")):
        assert sample_aside(make_case(number, tmp_path / "bases", tmp_path / "case")) == ""


def test_a_number_gives_the_same_folder_again(tmp_path):
    for name in BASES:
        build_base(name, tmp_path / "bases" / name)
    first, second = (make_case(7, tmp_path / "bases", tmp_path / place) for place in "ab")
    assert hostile.content(first.folder) == hostile.content(second.folder)
    assert (first.kind, first.size) == (second.kind, second.size)


def raise_something(folder):
    raise KeyError("x")


def run_code(folder):
    pickle.loads(pickle.dumps(Harm()))


def read_outside(folder):
    (folder.parent / "outside" / "secret").read_text()


def write_outside(folder):
    (folder.parent / "outside" / "new").touch()


def start_a_process(folder):
    subprocess.run([sys.executable, "-c", ""])


def allocate(folder):
    torch.ones(64 << 18)


def wait(folder):
    time.sleep(9)


def obey(folder):
    import harm  # noqa: F401


@pytest.mark.parametrize(
    "way, told",
    [
        (raise_something, "KeyError"), (run_code, r"pickle\.find_class"), (read_outside, "opened secret outside"),
        (write_outside, "files outside were changed"), (start_a_process, r"subprocess\.Popen"), (allocate, "took 6"),
        (wait, "Late"), (obey, "imported harm"),
    ],
)  # fmt: skip
def test_what_misbehaves_is_noticed(way, told, tmp_path, monkeypatch):
    with prepared(tmp_path) as (bases, watch):
        case = make_case(0, bases, tmp_path / "case")
        monkeypatch.setitem(WAYS, "mine", way)
        monkeypatch.setattr(hostile, "PATIENCE", 1)
        outcome = try_one(case, "mine", watch)
    sys.modules.pop("harm", None)
    if way is allocate and not outcome.grown:
        pytest.skip("this system does not tell how much memory a process had at most")
    assert re.search(told, outcome.wrong), outcome.wrong


def test_a_refusal_is_no_misbehaviour(tmp_path, monkeypatch):
    def refuse(folder):
        raise UserError("two\nlines")

    with prepared(tmp_path) as (bases, watch):
        monkeypatch.setitem(WAYS, "mine", refuse)
        outcome = try_one(make_case(0, bases, tmp_path / "case"), "mine", watch)
    assert (outcome.refused, outcome.wrong) == ("two lines", "")


@pytest.mark.parametrize("text", ["", "two\nlines", "a\x1b[31m", "x" * 2001, "a\u2028b"])
def test_what_is_no_line_is_noticed(text):
    with pytest.raises(AssertionError):
        check_line(text)


def test_kinds_take_turns():
    assert in_turn({1: "a", 2: "a", 3: "b", 4: "a"}, 3) == [1, 3, 2]
