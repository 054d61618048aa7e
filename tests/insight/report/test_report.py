"""`python -m gpt report`, as it is typed; and the page that train.py leaves."""

import pytest
import yaml

from gpt.config import ROOT
from gpt.insight.report import report as module
from gpt.insight.report.report import ReportSettings, leave_report


@pytest.fixture
def here(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return trained("a run")


def test_the_page_of_a_run_that_is_named(here, verb):
    assert verb("report", "run=a run") == (0, "open 'a run/report.html'\n", "")
    assert (here / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_page_is_where_it_is_wanted(here, verb, tmp_path):
    assert verb("report", "run=a run", "to=new/mine.html")[:2] == (0, "open new/mine.html\n")
    assert (tmp_path / "new" / "mine.html").is_file()
    assert not (here / "report.html").exists()


def test_the_latest(here, verb, monkeypatch):
    monkeypatch.setattr(module, "latest", lambda: here)
    assert verb("report")[0] == 0
    assert (here / "report.html").is_file()


@pytest.mark.parametrize(
    "argv, told",
    [
        (["run=nope"], "error: run: nope is not there; "),
        (["run=a run", "to="], "error: to: expected a file, got nothing"),
        (["run=a run", "to=a run/config.yaml/x.html"], "error: to: a run/config.yaml: "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(here, verb, argv, told):
    code, out, err = verb("report", *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(told)


def test_a_page_that_cannot_be_written_is_a_warning(here, monkeypatch):
    monkeypatch.setattr(module, "as_html", lambda run: 1 / 0)
    with pytest.warns(UserWarning, match=r"report\.html is not written: division by zero"):
        assert leave_report(here) is None


def test_the_yaml_lists_every_setting_with_its_default():
    content = yaml.safe_load((ROOT / "configs" / "report.yaml").read_text(encoding="utf-8"))
    assert {key: value for key, value in content.items() if key != "defaults"} == ReportSettings().model_dump()
