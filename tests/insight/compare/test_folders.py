"""Which folders are runs."""

import pytest

from gpt import runs
from gpt.config import UserError
from gpt.insight.compare.folders import chosen


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runs, "RUNS", tmp_path / "runs")
    for name in ("one", "sweep/1", "sweep/2", "half", "study/mask"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    for name in (
        "one/config.yaml",
        "sweep/1/config.yaml",
        "sweep/2/metrics.csv",
        "sweep/sweep.csv",
        "study/mask/m.png",
    ):
        (tmp_path / "runs" / name).touch()
    return tmp_path


def names(found):
    return [path.relative_to(runs.RUNS).as_posix() for path in found]


def test_without_names_all_that_there_are_and_half_made_ones(here):
    assert names(chosen([])) == ["half", "one", "sweep/1", "sweep/2"]


def test_a_sweep_stands_for_its_jobs_and_no_run_comes_twice(here):
    found = [path.as_posix() for path in chosen(["runs/sweep", "runs/one", "runs/sweep/2"])]
    assert found == ["runs/sweep/1", "runs/sweep/2", "runs/one"]


def test_a_run_bears_the_first_of_its_names(here):
    (here / "runs" / "there").symlink_to(here / "runs")
    assert names(chosen([])) == ["half", "one", "sweep/1", "sweep/2"]


@pytest.mark.parametrize(
    "name, told",
    [("nope", "is not there"), ("runs/sweep/sweep.csv", "is no folder"), ("runs/study", "holds no run")],
)
def test_what_is_no_run_is_told(here, name, told):
    with pytest.raises(UserError, match=rf"^runs: {name} {told}; name the folders of runs, or of a sweep$"):
        chosen([name])


def test_before_the_first_run(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path / "runs")
    with pytest.raises(UserError, match="there is no run in .* yet; train one first: python train.py"):
        chosen([])
