import warnings

import pytest

from gpt.launch import heard, is_launched, local_rank, local_size, rank


def test_alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (is_launched(), rank(), local_rank(), local_size()) == (False, 0, 0, 1)


def test_as_torchrun_says(monkeypatch):
    for name, value in {"RANK": 5, "WORLD_SIZE": 8, "LOCAL_RANK": 1, "LOCAL_WORLD_SIZE": 4}.items():
        monkeypatch.setenv(name, str(value))
    assert (is_launched(), rank(), local_rank(), local_size()) == (True, 5, 1, 4)


@pytest.mark.parametrize("number, printed", [(0, "a word\n"), (1, "")])
def test_rank_0_alone_is_heard(monkeypatch, capsys, recwarn, number, printed):
    monkeypatch.setenv("RANK", str(number))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with heard():
        print("a word")
        warnings.warn("a warning", stacklevel=1)
    assert capsys.readouterr().out == printed
    assert len(recwarn) == (number == 0)
    print("after")
    assert capsys.readouterr().out == "after\n"
