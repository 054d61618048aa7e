"""Runs as rows, with numbers that are known, sorted by loss."""

import csv
import io
from dataclasses import replace

import pytest

from gpt.insight import terminal
from gpt.insight.compare.table import as_csv, compared, differences, grid
from gpt.insight.record import read


@pytest.fixture
def three(trained, tmp_path, monkeypatch):
    """The second is the best, the third was killed before its first checkpoint and evaluation."""
    monkeypatch.chdir(tmp_path)
    trained("one", losses=[5.0, 4.0])
    trained("two", "optimizer.lr=0.5", losses=[3.0, 3.5], speeds=[1000.0, 2000.0])
    trained("three", "seed=7", "steps=400", losses=[], done=0)
    return [read(tmp_path / name) for name in ("one", "two", "three")]


def test_csv_has_numbers_in_full(three):
    rows = list(csv.reader(io.StringIO(as_csv(compared(three)))))
    assert rows == [
        ["run", "validation_loss", "validation_bits_per_byte", "step", "loss", "tokens_per_second", "elapsed",
         "status", "seed", "steps", "optimizer.lr"],
        ["two", "3.0", "2.0", "10.0", "4.0", "1500.0", "30.0", "finished", "1337", "30", "0.5"],
        ["one", "4.0", "3.0", "20.0", "4.5", "200.0", "30.0", "finished", "1337", "30", "0.006"],
        ["three", "", "", "", "", "", "", "no checkpoint", "7", "400", "0.006"],
    ]  # fmt: skip


def test_what_people_read(three, capsys):
    terminal.show(grid(compared(three), 120))
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[0].split()) == "run loss bits/byte tokens/s time status seed steps optimizer.lr"
    assert "two 3.0000 2.0000 1,500 30 s finished 1337 30 0.5" in [" ".join(line.split()) for line in lines]
    assert all(len(line) <= terminal.WIDTH for line in lines)


def test_many_settings_stand_in_one_column(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained("one")
    trained("two", "seed=1", "clip=0.5", "keep=2", "batch_size=4", "steps=40", losses=[3.0])
    terminal.show(grid(compared([read(tmp_path / "one"), read(tmp_path / "two"), read(trained("three"))]), 72))
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("run loss bits/byte tokens/s time status settings")
    assert "clip=0.5" in out


def test_runs_of_other_tokenizers_are_sorted_by_bits_per_byte(trained):
    """A token of bpe is more text than a byte: its loss is higher, its bits per byte lower."""
    same = compared([read(trained("one", losses=[4.0])), read(trained("two", losses=[3.0]))])
    assert (same.sorted_by, [run.folder.name for run in same.runs]) == ("", ["two", "one"])
    bpe = compared([*same.runs, read(trained("bpe", "tokenizer=bpe", losses=[2.5]))])
    assert bpe.sorted_by.startswith("sorted by bits/byte")
    assert [run.folder.name for run in bpe.runs] == ["bpe", "two", "one"]


def with_text(run, fingerprint):
    return replace(run, state=run.state.model_copy(update={"data": fingerprint}))


def test_a_text_that_was_edited_under_its_name_is_told(trained):
    old, new = read(trained("old")), with_text(read(trained("new")), "beef")
    assert compared([old, new]).sorted_by.startswith("sorted by bits/byte: the text was edited between these runs, ")
    assert compared([old, with_text(new, old.state.data)]).sorted_by == ""
    begun = replace(new, settings={**new.settings, "init": "old"})  # the same text, and another's tokenizer
    assert compared([old, begun]).sorted_by == ""


def test_what_computed_a_run_is_told_where_it_differs(trained):
    """Speeds of a compiled run and of another do not compare."""
    one, two, none = read(trained("one")), read(trained("two", "seed=7")), read(trained("three", losses=[], done=0))
    assert compared([one, two, none]).paths == ["seed"]
    compiled = replace(two, state=two.state.model_copy(update={"compiled": True}))
    found = compared([one, compiled, none])
    assert found.paths == ["seed", "computed"]
    assert [settings.get("computed") for settings in found.settings] == ["cpu", "cpu, compiled", ""]


def test_of_two_runs_every_setting_that_differs_is_listed(trained):
    pair = compared([read(trained("a")), read(trained("b", "optimizer=adamw", "name=other", "model.n_head=4"))])
    listed = {path: values for path, *values in pair.pair}
    assert listed["optimizer"] == ["muon", "adamw"]
    assert listed["model.n_head"] == ["2", "4"]
    assert listed["optimizer.momentum"] == ["0.95", ""]
    assert "name" not in listed
    assert "steps" not in listed


def test_three_runs_or_one_without_settings_are_no_pair(three, tmp_path):
    assert compared(three).pair == []
    assert compared([three[0], read(tmp_path)]).pair == []


def test_a_damaged_run_tells_no_setting_apart(trained, tmp_path):
    runs = [trained("one"), trained("two", "seed=7"), trained("three")]
    (runs[2] / "config.yaml").write_text("name: 5\n")
    found = compared([read(folder) for folder in runs])
    assert found.paths == ["seed"]
    assert [run.status for run in found.runs if run.folder == runs[2]] == [
        "damaged: name: expected a valid string, got 5"
    ]


def test_a_terminal_does_not_obey_a_folder_s_name(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pair = compared([read(trained("plain", "seed=7")), read(trained("red\x1b[31m\nline"))])
    terminal.show(grid(pair, 120), differences(pair))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.count("red\\x1b[31m line") == 2
