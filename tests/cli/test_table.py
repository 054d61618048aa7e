"""The table of a sweep's outcomes."""

import csv

import pytest

from gpt.cli.jobs import jobs_of
from gpt.cli.table import Report, clock, show, write

JOBS = jobs_of(["optimizer=adam,sgd", "n=1,2", "steps=3"], {})
LONG = "failed: model.d_model: 33 is not divisible by n_head 2; take a multiple, or set model.head_dim [dim] :x:"
REPORTS = {
    1: Report("done", {"validation loss": "1.3353", "folder": "runs/2026-01-02_03-04-05_a-long-name/1"}, 3725.4),
    2: Report(LONG),
    3: Report("interrupted", {}, 4.26),
    4: Report("done", {"folder": "runs/4", "tokens": "7"}, 0.2),
}
HEADER = ["job", "optimizer", "n", "validation loss", "folder", "tokens"]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_piped_it_is_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    show(JOBS, REPORTS)
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert cells(lines[0]) == [*HEADER, "time", "status"]
    folder = "runs/2026-01-02_03-04-05_a-long-name/1"
    assert cells(lines[2]) == ["1", "adam", "1", "1.3353", folder, "1:02:05", "done"]
    assert cells(lines[3]) == ["2", "adam", "2", LONG]
    assert cells(lines[4]) == ["3", "sgd", "1", "0:00:04", "interrupted"]
    assert cells(lines[5]) == ["4", "sgd", "2", "runs/4", "7", "0:00:00", "done"]
    assert lines[5].index("7") == lines[0].index("tokens"), "under its title"


def test_on_a_terminal_it_is_wrapped_and_nothing_is_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich's word for: take this for a terminal
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    show(JOBS, REPORTS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    title = next(line for line in lines if "status" in line)
    for column, text in (("status", LONG), ("folder", REPORTS[1].outcome["folder"])):
        here = title.index(column)
        cut = slice(here, title.index("tokens") if column == "folder" else None)
        assert text.replace(" ", "") in "".join(line[cut].replace(" ", "") for line in lines), column


def test_the_file_has_times_in_seconds(tmp_path):
    write(tmp_path / "sweep.csv", JOBS, REPORTS)
    with (tmp_path / "sweep.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*HEADER, "seconds", "status"]
    assert rows == [
        ["1", "adam", "1", "1.3353", "runs/2026-01-02_03-04-05_a-long-name/1", "", "3725.4", "done"],
        ["2", "adam", "2", "", "", "", "", LONG],
        ["3", "sgd", "1", "", "", "", "4.3", "interrupted"],
        ["4", "sgd", "2", "", "runs/4", "7", "0.2", "done"],
    ]


@pytest.mark.parametrize("seconds, shown", [(0.4, "0:00:00"), (59.6, "0:01:00"), (90000, "1 day, 1:00:00")])
def test_clock(seconds: float, shown: str):
    assert clock(seconds) == shown
