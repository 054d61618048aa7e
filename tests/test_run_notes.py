"""What a run's folder keeps for readers, whoever wrote it."""

import pytest

from gpt import run_notes
from gpt.config import UserError
from gpt.run_notes import Sample, append_sample, cut_samples, read_samples, read_summary, write_summary

SAMPLES = [Sample(10, "私 a\n\u2028b"), Sample(20, ""), Sample(30, "</script>")]


def test_samples_come_back_up_to_a_step(tmp_path):
    for sample in SAMPLES:
        append_sample(tmp_path, sample)
    assert read_samples(tmp_path, until=20) == SAMPLES[:2]
    cut_samples(tmp_path, until=10)
    assert read_samples(tmp_path, until=99) == SAMPLES[:1]
    assert [path.name for path in tmp_path.iterdir()] == ["samples.jsonl"]


def test_where_there_are_none(tmp_path):
    cut_samples(tmp_path, until=10)
    assert read_samples(tmp_path, until=10) == []
    assert read_summary(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line", [b'{"step": 5, "te', b"[]", b'{"step": true, "text": "a"}', b'{"step": 5}', b"\xff", b"[" * 99_999]
)
def test_a_line_that_is_no_sample_is_left_out(tmp_path, line):
    (tmp_path / "samples.jsonl").write_bytes(line + b'\n{"step": 10, "text": "a"}\n')
    assert read_samples(tmp_path, until=99) == [(10, "a")]


def test_samples_without_an_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(run_notes, "LARGEST_SAMPLES", 10)
    (tmp_path / "samples.jsonl").write_text("x" * 11)
    with pytest.raises(UserError, match=r"samples\.jsonl: this is no file of samples"):
        read_samples(tmp_path, until=1)


def test_a_summary_comes_back_as_words(tmp_path):
    write_summary(tmp_path, {"model": "私"})
    assert read_summary(tmp_path) == {"model": "私"}
    (tmp_path / "summary.json").write_text('{"model": [1], "data": null}')
    assert read_summary(tmp_path) == {"model": "[1]", "data": "None"}
    (tmp_path / "summary.json").write_text("[]")
    with pytest.raises(UserError, match=r"summary\.json: a JSON object is expected"):
        read_summary(tmp_path)
