import os
import subprocess
import sys

import pytest

from gpt.data import progress
from gpt.data.progress import watched

CODE = """
import sys, time
from gpt.data import progress

progress.INTERVAL = 0.3
total = int(sys.argv[2]) or None
for document in progress.watched([["some ", "text"]] * 30, "reading the text", total):
    for chunk in document:
        time.sleep(float(sys.argv[1]) / 2)
"""


def test_without_a_terminal_the_documents_pass_and_short_work_is_silent(capfd):
    documents = watched([["a", "b"], [], ["c"]], "reading", 3)
    assert [list(document) for document in documents] == [["a", "b"], [], ["c"]]
    assert capfd.readouterr() == ("", "")


def test_it_counts_bytes_and_not_characters(capfd, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    assert ["".join(document) for document in watched([["日", "本"]], "reading", 6)] == ["日本"]
    assert capfd.readouterr().err.splitlines() == ["reading: 3 bytes of 6 bytes", "reading: 6 bytes of 6 bytes"]


@pytest.mark.parametrize("total, shown", [(0, "bytes\n"), (270, " bytes of 270 bytes\n")])
def test_without_a_terminal_long_work_says_from_time_to_time_how_far_it_is(total, shown):
    command = [sys.executable, "-c", CODE, "0.05", str(total)]
    output = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True).stderr
    lines = output.splitlines(keepends=True)
    assert 1 <= len(lines) <= 5
    assert all(line.startswith("reading the text: ") and line.endswith(shown) for line in lines)


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("total", [0, 270])
@pytest.mark.parametrize("seconds, shown", [(0.0, False), (0.06, True)])  # each, of 30 documents
def test_on_a_terminal_long_work_has_a_bar(seconds, shown, total):
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-c", CODE, str(seconds), str(total)]
    with subprocess.Popen(command, stderr=theirs, env=environment) as process:
        os.close(theirs)
        output = read_all(ours)
    assert process.returncode == 0
    assert ("reading the text" in output) == shown
    assert ("/270 bytes" in output) == (shown and total > 0)  # with a total, and so with an ETA
    assert shown or not output


def read_all(descriptor: int) -> str:
    """What is written until the other side is closed, which Linux tells by an error."""
    output = b""
    try:
        while chunk := os.read(descriptor, 4096):
            output += chunk
    except OSError:
        pass
    os.close(descriptor)
    return output.decode()
