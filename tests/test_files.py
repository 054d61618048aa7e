import os
import signal
import subprocess
import sys

import pytest

from gpt import files
from gpt.config import UserError
from gpt.files import AT_WORK, DEEPEST, hold, is_deep, read_json, refuse_unwritable, workshop, write_whole

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


def test_json_of_no_sensible_size_is_not_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    assert read_json(path, largest=8) == {"a": 1}
    with pytest.raises(UserError, match="a JSON file is expected there"):
        read_json(path, largest=7)


@pytest.mark.parametrize("content", [f'{{"a": {"[" * 60}1{"]" * 60}}}', '{"a":' * 60 + "1" + "}" * 60])
def test_json_that_is_deep_is_not_read(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(UserError, match="this is no JSON text"):
        read_json(tmp_path / "a.json")


def test_depth_is_counted_in_lists_and_mappings():
    deepest = 1
    for number in range(DEEPEST):
        deepest = [deepest] if number % 2 else {"a": deepest, "b": 0}
    assert not is_deep(deepest)
    assert is_deep([deepest])
    assert not is_deep(list(range(1000)))


def test_json_elsewhere_is_not_read(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "outside.json").write_text("{}")
    (tmp_path / "folder" / "a.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(UserError, match="a JSON file is expected there"):
        read_json(tmp_path / "folder" / "a.json")
    (tmp_path / "folder" / "b.json").write_text("{}")
    (tmp_path / "folder" / "c.json").symlink_to("b.json")
    (tmp_path / "link").symlink_to("folder")
    assert read_json(tmp_path / "link" / "c.json") == {}


def test_a_file_is_not_written_through_a_link(tmp_path):
    (tmp_path / "outside").write_text("kept")
    (tmp_path / f".a.csv.{os.getpid()}").symlink_to(tmp_path / "outside")
    write_whole(tmp_path / "a.csv", "new")
    assert (tmp_path / "outside").read_text() == "kept"
    assert (tmp_path / "a.csv").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="needs pipes of Unix")
def test_a_mark_that_is_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / ".making-x").mkdir()
    os.mkfifo(tmp_path / ".making-x" / AT_WORK)
    with workshop(tmp_path, ".making-"):
        assert (tmp_path / ".making-x").exists(), "nobody can tell, so it stays"


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
def test_a_folder_that_could_not_be_made_is_refused_with_the_setting_that_named_it(tmp_path):
    refuse_unwritable("to", tmp_path / "new" / "one")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as refused:
        refuse_unwritable("to", tmp_path / "file" / "in" / "it")
    file = tmp_path / "file"
    assert str(refused.value) == f"to: {file}/in/it: {file} is no folder that can be written to; name another one"


def test_a_folder_is_held_by_one(tmp_path):
    descriptor = hold(tmp_path)
    with pytest.raises(BlockingIOError):
        hold(tmp_path)
    os.close(descriptor)
    os.close(hold(tmp_path))
    with pytest.raises(FileNotFoundError):
        hold(tmp_path / "none")
