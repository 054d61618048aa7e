"""Where runs are: a folder is claimed once, and all are found."""

import os
from datetime import datetime

import pytest

from gpt import runs
from gpt.config import UserError
from gpt.run_folder import RunFolder
from gpt.runs import claim_folder, run_folders


def test_folders_are_claimed_once(root, monkeypatch):
    class OneSecond(datetime):
        @classmethod
        def now(cls):
            return cls(2024, 2, 29, 13, 5, 9)

    monkeypatch.setattr(runs, "datetime", OneSecond)
    claimed = [claim_folder(None, "a/b: 私") for _ in range(3)]
    plain = "2024-02-29_13-05-09_a-b--私"
    assert claimed == [root / plain, root / f"{plain}-2", root / f"{plain}-3"]
    assert all(folder.is_dir() for folder in claimed)


def test_a_run_never_overwrites_another(tmp_path):
    wanted = tmp_path / "deep" / "mine"
    assert claim_folder(wanted, "x") == wanted
    assert claim_folder(wanted, "x") == wanted, "an empty folder may be taken"
    (wanted / "notes.txt").touch()
    with pytest.raises(UserError, match=r"is there already, and a run never overwrites another"):
        claim_folder(wanted, "x")
    with pytest.raises(UserError, match="cannot be made|is there already"):
        claim_folder(wanted / "notes.txt" / "inside", "x")


def test_what_a_process_left_that_was_killed_before_it_had_a_configuration_is_no_run(tmp_path, bytes_data):
    wanted = tmp_path / "mine"
    wanted.mkdir()
    (wanted / ".config.yaml.4711").write_text("name: ha")
    assert claim_folder(wanted, "x") == wanted
    (wanted / ".metrics.csv.4711").touch()
    (wanted / ".config.yaml.old").touch()  # a name that is not ours
    with pytest.raises(UserError, match="is there already"):
        claim_folder(wanted, "x")
    RunFolder(wanted).start({}, bytes_data, keep=1)
    assert {path.name for path in wanted.iterdir()} == {"config.yaml", "metrics.csv", ".config.yaml.old"}


def test_the_runs_are_listed_newest_first_jobs_of_sweeps_too(root, make_run):
    for number, name in enumerate(["b", "sweep/0", "a"]):
        folder = make_run(root / name, steps=[]).folder
        os.utime(folder / "config.yaml", (1000 + number, 1000 + number))
    (root / "empty").mkdir()
    assert run_folders() == [root / "a", root / "sweep" / "0", root / "b"]


def test_a_root_that_cannot_be_made_ends(root):
    root.symlink_to("/nowhere/at/all")
    with pytest.raises(UserError, match="cannot be made"):
        claim_folder(None, "x")
