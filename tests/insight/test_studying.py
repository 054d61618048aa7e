"""`python -m gpt study NAME`: what is printed, what is left in the folder, and what is refused."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from gpt.cli import compose
from gpt.config import ROOT, UserError, variant_class, variant_names
from gpt.insight import studying
from gpt.insight.plot import new_figure
from gpt.insight.study import Context, Findings, Table
from gpt.insight.studying import StudySettings, as_csv, show, study, write

STUDIES = variant_names("gpt.insight.study")
FINDINGS = Findings(
    {
        "speed": Table(
            "How fast", ["variant", "length", "seconds"], [["sdpa", 32768, 1 / 3], ["reference", 65536, None]]
        ),
        "size": Table("How large", ["bytes"], [[12]]),
    },
    {},
    ["What was found, in words.", "And more."],
)


def verb(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpt", "study", *argv], cwd=cwd, capture_output=True, text=True, encoding="utf-8"
    )


def settings(*argv: str) -> StudySettings:
    return compose("study", list(argv), StudySettings)[0]


def test_there_are_studies():
    assert {"scaling", "mask"} <= set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_has_a_yaml_with_its_defaults(name):
    content = yaml.safe_load((ROOT / "configs" / "study" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert content == variant_class("gpt.insight.study", name)(name=name).model_dump()
    assert settings(f"study={name}").study.name == name


def test_the_yaml_lists_every_setting_with_its_default():
    content = yaml.safe_load((ROOT / "configs" / "study.yaml").read_text(encoding="utf-8"))
    fields = StudySettings.model_fields
    assert {k: v for k, v in content.items() if k != "defaults"} == {
        k: f.default for k, f in fields.items() if k != "study"
    }


def test_the_whole_of_it_from_anywhere(tmp_path):
    """Relative `to` is of the working directory, and is a text whatever it holds."""
    folder = "図 a,b=(c) ${x} it's"
    done = verb("scaling", "study.d_k=[4,16]", "study.trials=100", "study.keys=8", f"to={folder}", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / folder).iterdir()) == ["scaling.png", "scores.csv", "softmax.csv"]
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    with (tmp_path / folder / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["d_k"], row["√d_k"], row["theory"]) for row in rows] == [("4", "2.0", "1"), ("16", "4.0", "1")]
    assert float(rows[1]["std of q·k"]) == pytest.approx(4, rel=0.2)
    lines = done.stdout.splitlines()
    assert lines[0] == "Scores: their standard deviation, what theory says, and the sampling error"
    assert f"{float(rows[1]['std of q·k']):.4g}" in lines[3].split()
    assert lines[-1] == f"picture: {Path(folder) / 'scaling.png'}"
    assert any(line.startswith("· Without scaling the softmax saturates") for line in lines)
    assert all(line == line.rstrip() and len(line) <= 120 for line in lines)
    assert (tmp_path / folder / "scaling.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "argv, told",
    [
        (["scaling", "study.trails=3"], "study.trails: there is no such setting; did you mean study.trials? "),
        (["scaling", "sed=3"], "sed: there is no such setting; did you mean seed? "),
        (["scaling", "study.context=3"], "study.context: study=scaling has no such setting; it belongs to study=mask"),
        (["scaling", "study.d_k=[]"], "study.d_k: "),
        (["scaling", "study.trials=1"], "study.trials: expected greater than or equal to 2, got 1"),
    ],
)
def test_a_wrong_setting_is_told(argv, told):
    with pytest.raises(UserError) as caught:
        settings(f"study={argv[0]}", *argv[1:])
    assert str(caught.value).startswith(told)


def test_a_wrong_setting_leaves_nothing(tmp_path):
    done = verb("scaling", "study.trails=3", "to=here", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/below", ""])
def test_a_folder_that_cannot_be_is_refused_before_the_study(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("", encoding="utf-8")
    monkeypatch.setattr(studying, "choose_device", lambda name: pytest.fail("the study began"))
    with pytest.raises(UserError, match="^to: "):
        study(settings("study=scaling", f"to={name}"), None)


def test_without_a_folder_it_is_one_of_the_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(studying, "RUNS", tmp_path)
    study(settings("study=mask", "study.context=4"), None)
    assert (tmp_path / "study" / "mask" / "masks.png").is_file()
    assert (tmp_path / "study" / "mask" / "weights.csv").is_file()
    assert f"picture: {tmp_path / 'study' / 'mask' / 'masks.png'}\n" in capsys.readouterr().out


def test_csv_holds_numbers_in_full():
    assert as_csv(FINDINGS.tables["speed"]) == (
        "variant,length,seconds\nsdpa,32768,0.3333333333333333\nreference,65536,\n"
    )


def test_tables_then_sentences_then_pictures_are_printed(capsys):
    show(FINDINGS, [Path("a/b.png")])
    assert capsys.readouterr().out == (
        "How fast\n"
        "variant    length  seconds\n"
        "sdpa       32,768   0.3333\n"
        "reference  65,536\n"
        "\n"
        "How large\n"
        "bytes\n"
        "   12\n"
        "\n"
        "· What was found, in words.\n"
        "· And more.\n"
        "\n"
        "picture: a/b.png\n"
    )


def test_what_was_there_is_replaced(tmp_path):
    (tmp_path / "size.csv").write_text("old", encoding="utf-8")
    assert write(Findings(FINDINGS.tables, {"p": new_figure()[0]}), tmp_path) == [tmp_path / "p.png"]
    assert (tmp_path / "size.csv").read_text(encoding="utf-8") == "bytes\n12\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.png", "size.csv", "speed.csv"]


def test_a_table_has_rows_of_one_length():
    with pytest.raises(ValueError, match=r"^t: a row of 1 under 2 columns: \[7\]$"):
        Table("t", ["a", "b"], [[1, 2], [7]])


def test_a_study_is_given_a_reporter_that_shows_how_far_it_is(capsys):
    with Context(torch.device("cpu"), 0).progress(2.0) as advance:
        advance(2.0)
    assert capsys.readouterr() == ("", "")  # no terminal, and done at once
