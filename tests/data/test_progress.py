import os
import subprocess
import sys

import pytest

from gpt.data.progress import watched

CODE = """
import sys, time
from gpt.data.progress import watched

for document in watched(["some text"] * 30, "reading the text"):
    time.sleep(float(sys.argv[1]))
"""


def test_without_a_terminal_the_documents_pass_in_silence(capfd):
    assert list(watched(["a", "b"], "reading")) == ["a", "b"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("seconds, shown", [(0.0, False), (0.06, True)])  # each, of 30 documents
def test_on_a_terminal_long_work_has_a_bar(seconds, shown):
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-c", CODE, str(seconds)]
    with subprocess.Popen(command, stderr=theirs, env=environment) as process:
        os.close(theirs)
        output = read_all(ours)
    assert process.returncode == 0
    assert ("reading the text" in output) == shown
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
