"""The campaign of tests/campaign.py, but short: no run is lost; and what differs from an undisturbed one is noticed."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from gpt.config import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the campaign forks processes and reads /proc")
SCRIPT = ROOT / "tests" / "campaign.py"


def test_no_run_is_lost(tmp_path):
    command = [sys.executable, str(SCRIPT), "4", "disks=1", f"in={tmp_path}"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    kills, inside = re.search(r"^kill -9: (\d+) times, (\d+) of them inside a save", done.stdout, re.M).groups()
    assert int(kills) >= 5, "four, and one after a SIGTERM"
    assert int(inside) * 3 >= int(kills)
    assert " 0 lost or different" in done.stdout
    for name in ("SIGINT", "SIGTERM", "SIGUSR1"):
        assert re.search(rf"^{name} +1 +1 +0$", done.stdout, re.M), done.stdout
    if skipped := re.search(r"^skipped: (.*)$", done.stdout, re.M):
        pytest.skip(f"all of it is well but for what is not tested: {skipped[1]}")
    assert re.search(r"^disk full for a while +1 +1 +0$", done.stdout, re.M), done.stdout


@pytest.fixture
def campaign():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("campaign_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runs(campaign, make_run, tmp_path):
    """A run at its end that nothing disturbed, and its like."""
    made = []
    for name in ("undisturbed", "struck"):
        opened = make_run(tmp_path / name, steps=[(160, 2.0), (240, 1.0)])
        for step in range(10, 241, 10):
            opened.log({"step": step, "loss": 3.0})
            if step % 80 == 0:
                opened.log({"step": step, "validation_loss": 240 / step})
        made.append(campaign.Run(tmp_path, opened.folder, "adamw", "15"))
    return made


def last(run):
    return run.folder / "checkpoints" / "step_00000240"


def other_weights(run, make_run):
    other = make_run(run.folder.parent / "other", seed=1, steps=[(240, 1.0)])
    shutil.rmtree(last(run))
    shutil.copytree(other.last.folder, last(run))


def another_optimizer(run, _):
    """Whole, as its checksum says."""
    file, sums = last(run) / "optimizer.safetensors", last(run) / "checksums.json"
    before, after = hashlib.sha256(file.read_bytes()).hexdigest(), hashlib.sha256(b"other").hexdigest()
    file.write_bytes(b"other")
    sums.write_text(sums.read_text().replace(before, after))


def a_changed_bit(run, _):
    file = last(run) / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def nothing_of_the_last(run, _):
    shutil.rmtree(last(run))


def something_left(run, _):
    (run.folder / "checkpoints" / ".saving-x").mkdir()


def something_left_beside(run, _):
    (run.folder / ".metrics.csv.123").touch()


def a_row_twice(run, _):
    table = run.folder / "metrics.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([*lines[:3], lines[2], *lines[3:]]))


def a_row_missing(run, _):
    table = run.folder / "metrics.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([*lines[:3], *lines[4:]]))


def another_evaluation(run, _):
    table = run.folder / "metrics.csv"
    table.write_text(re.sub(r"^160,(.*),1.5,", r"160,\1,1.25,", table.read_text(), flags=re.M))


@pytest.mark.parametrize(
    "harm, told",
    [
        (other_weights, "step_00000240/model.safetensors differs"),
        (another_optimizer, "step_00000240/optimizer.safetensors differs"),
        (a_changed_bit, "a checkpoint is not whole"),
        (nothing_of_the_last, r"there are \[\]"),
        (something_left, "there are .*saving-x"),
        (something_left_beside, "in its folder there are .*metrics.csv.123"),
        (a_row_twice, r"has the updates \[10, 20, 20, 30"),
        (a_row_missing, r"has the updates \[10, 20, 40"),
        (another_evaluation, r"has the evaluations .*\(160, '1.25'\)"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_what_differs_is_noticed(campaign, runs, make_run, harm, told):
    undisturbed, struck = runs
    struck.check_same(undisturbed)
    harm(struck, make_run)
    with pytest.raises(campaign.Lost, match=told):
        struck.check_same(undisturbed)


def test_a_row_of_a_signal_must_be_there_and_one_of_a_killed_one_may(campaign, runs):
    undisturbed, struck = runs
    struck.perhaps = {30, 33}
    struck.check_same(undisturbed)
    struck.told = {33}
    with pytest.raises(campaign.Lost, match=r"with signals after \{33\}"):
        struck.check_same(undisturbed)


def test_only_a_run_killed_after_its_last_save_may_be_untidy(campaign, runs):
    undisturbed, struck = runs
    something_left(struck, None)
    struck.cut = True
    struck.check_same(undisturbed)
    nothing_of_the_last(struck, None)
    with pytest.raises(campaign.Lost, match=r"there are \['.saving-x'"):
        struck.check_same(undisturbed)


@pytest.mark.parametrize(
    "files, saved, stage",
    [
        ([], False, "just begun"),
        (["step_00000015/model.safetensors"], False, "half written"),
        (["step_00000015/model.safetensors", "step_00000015/checksums.json"], False, "written, not renamed"),
        ([], True, "renamed"),
    ],
)
def test_how_far_a_save_had_come_is_told_by_what_it_left(campaign, tmp_path, files, saved, stage):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert campaign.stage(tmp_path, saved) == stage
