"""`python -m gpt compare`, as it is verb."""

import pytest
import yaml

from gpt.config import ROOT, UserError
from gpt.insight.compare.compare import CompareSettings, compare


@pytest.fixture
def two(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return trained("one"), trained("b=2, 'x'", "seed=7", losses=[3.0])


def test_plain_words_are_runs_whatever_their_names(two, verb):
    code, out, err = verb("compare", "one", "b=2, 'x'")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["b=2,", "one"]
    assert [line.split() for line in lines[4:7]] == [
        ["Settings", "that", "differ"], ["setting", "b=2,", "'x'", "one"], ["seed", "7", "1337"],
    ]  # fmt: skip


def test_a_file_is_left_where_one_is_named(two, verb, tmp_path):
    code, out, _ = verb("compare", "one", "to=a b.csv")
    assert (code, out.splitlines()[-1]) == (0, "open 'a b.csv'")
    assert (tmp_path / "a b.csv").read_text().startswith("run,validation_loss,")


@pytest.mark.parametrize(
    "argv, told",
    [
        (["nope"], "error: runs: nope is not there; "),
        (["one", "to=a.txt"], "error: to: expected a file whose name ends in .csv"),
        (["one", "to=one/config.yaml/a.csv"], "error: to: one/config.yaml: "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(two, verb, argv, told):
    code, out, err = verb("compare", *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(told)


def test_a_folder_that_goes_away_is_told(tmp_path):
    with pytest.raises(UserError, match="is not there"):
        compare(CompareSettings(runs=[str(tmp_path / "gone")]), None)


def test_the_yaml_lists_every_setting_with_its_default():
    content = yaml.safe_load((ROOT / "configs" / "compare.yaml").read_text(encoding="utf-8"))
    assert {key: value for key, value in content.items() if key != "defaults"} == CompareSettings().model_dump()
