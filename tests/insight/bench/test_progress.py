from gpt.insight.bench import progress
from gpt.insight.bench.progress import bar


def test_plain_lines_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    with bar(total=2) as advance:
        for _ in range(4):
            advance(0.5)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"measuring: {percent}%" for percent in (25, 50, 75, 100)]
    assert lines[-1] == "measuring: 100%, about 0 s left"


def test_quick_work_says_nothing(capsys):
    with bar(total=1) as advance:
        advance(1.0)
    assert capsys.readouterr() == ("", "")
