import os
import signal
import subprocess
import sys

import pytest

from gpt import files
from gpt.config import UserError
from gpt.files import AT_WORK, hold, read_json, workshop, write_whole

HOLD = """
import sys, time
from pathlib import Path
from gpt.files import workshop

with workshop(Path(sys.argv[1]), ".making-") as folder:
    (folder / "half").write_text("half")
    print(folder, flush=True)
    time.sleep(60)
"""


def test_a_workshop_is_gone_when_its_work_is_done(tmp_path):
    with workshop(tmp_path, ".making-") as folder:
        (folder / "file").write_text("x")
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_workshop_is_gone_after_an_error(tmp_path):
    with pytest.raises(KeyError), workshop(tmp_path, ".making-"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="needs file locks of Unix and SIGKILL")
def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(tmp_path):
    other = tmp_path / ".making-by-hand"  # holds no mark, so nobody can tell: it stays
    other.mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        abandoned = process.stdout.readline().strip()
        assert abandoned
        with workshop(tmp_path, ".making-") as ours:
            assert sorted(map(str, tmp_path.iterdir())) == sorted([abandoned, str(ours), str(other)])
            assert (ours / AT_WORK).exists()
        process.send_signal(signal.SIGKILL)
    assert os.path.exists(abandoned)  # noqa: PTH110
    with workshop(tmp_path, ".other-"):
        assert os.path.exists(abandoned)  # noqa: PTH110
    with workshop(tmp_path, ".making-"):
        assert not os.path.exists(abandoned)  # noqa: PTH110
    assert list(tmp_path.iterdir()) == [other]


def test_json_of_no_sensible_size_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    monkeypatch.setattr(files, "LARGEST_JSON", 8)
    assert read_json(path) == {"a": 1}
    monkeypatch.setattr(files, "LARGEST_JSON", 7)
    with pytest.raises(UserError, match="a JSON file is expected there"):
        read_json(path)


def test_a_file_is_the_old_one_or_the_new_one_whole(tmp_path, monkeypatch):
    path, other_name = tmp_path / "a.csv", tmp_path / "other"
    write_whole(path, "old")
    other_name.hardlink_to(path)
    synced, new = [], "私\r\n".encode()
    monkeypatch.setattr(
        files, "sync", lambda it: synced.append((it if it.is_dir() else it.read_bytes(), path.read_bytes()))
    )
    write_whole(path, "私\r\n")
    assert synced == [(new, b"old"), (tmp_path, new)], "the new one is on disk before it has the name, which follows"
    assert path.read_bytes() == "私\r\n".encode()
    assert other_name.read_bytes() == b"old", "another file took its place"
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")
    assert path.read_bytes() == "私\r\n".encode()


@pytest.mark.skipif(os.name == "nt", reason="needs file locks of Unix")
def test_a_folder_is_held_by_one(tmp_path):
    descriptor = hold(tmp_path)
    with pytest.raises(BlockingIOError):
        hold(tmp_path)
    os.close(descriptor)
    os.close(hold(tmp_path))
    with pytest.raises(FileNotFoundError):
        hold(tmp_path / "none")
