"""An error or a signal is one line and an exit code."""

import errno
import warnings

import pytest

from gpt.cli.ending import Ending, ending, plain_words, tell
from gpt.config import RunError, UserError
from gpt.signals import Interrupted

AGAIN = "; run again with debug=true for the traceback"


@pytest.mark.parametrize(
    "error, expected",
    [
        (UserError("steps: too many;\ntake fewer"), (2, "steps: too many; take fewer")),
        (RunError("no room"), (1, "no room")),
        (Interrupted(15, "saved"), (143, "saved")),
        (KeyboardInterrupt(), (130, "interrupted")),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "a.txt"),
            (2, "a.txt: No such file; mend that, or name another path"),
        ),
        (
            OSError(errno.ENOSPC, "No space left", "a"),
            (1, f"unexpected OSError: [Errno 28] No space left: 'a'{AGAIN}"),
        ),
        (
            PermissionError(errno.EACCES, "Permission denied"),
            (1, f"unexpected PermissionError: [Errno 13] Permission denied{AGAIN}"),
        ),
        (SystemExit(3), (1, f"unexpected SystemExit: 3{AGAIN}")),
        (ValueError("two\nlines"), (1, f"unexpected ValueError: two lines{AGAIN}")),
    ],
)
def test_what_is_told(error: BaseException, expected: tuple[int, str]):
    assert ending(error, debug=False) == expected


@pytest.mark.parametrize("error, traceback", [(ValueError("x"), True), (Interrupted(2, "saved"), False)])
def test_debug_shows_the_traceback_of_an_error_but_of_no_signal(capsys, error: BaseException, traceback: bool):
    tell(error, debug=True)
    err = capsys.readouterr().err
    assert ("ValueError: x\n" in err) == traceback
    assert err.endswith("error: unexpected ValueError: x\n" if traceback else "saved\n")


def test_where_it_happened_stands_before_it(capsys):
    assert tell(UserError("n: no"), debug=False, where="job 3: ") == Ending(2, "n: no")
    assert capsys.readouterr().err == "error: job 3: n: no\n"


def test_each_warning_is_given_anew():
    def warned() -> int:
        with warnings.catch_warnings(record=True) as caught:
            for _ in range(2):
                with plain_words():
                    for _ in range(2):
                        warnings.warn("once in a job", stacklevel=1)
        return len(caught)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert warned() == 2


@pytest.mark.parametrize(
    "error, rank, local_rank, told",
    [
        (RunError("no room"), 0, 0, "error: no room\n"),
        (RunError("no room"), 3, 1, "error: process 3: no room\n"),
        (
            KeyError("x"),
            3,
            1,
            "error: process 3: unexpected KeyError: 'x'; run again with debug=true for the traceback\n",
        ),
        (UserError("mistaken"), 0, 0, "error: mistaken\n"),
        (UserError("mistaken"), 1, 1, ""),  # all make it, and the first on a machine tells
        (UserError("mistaken"), 4, 0, "error: process 4: mistaken\n"),
        (Interrupted(15, "saved"), 0, 0, "saved\n"),
        (Interrupted(15, "saved"), 4, 0, ""),
    ],
)
def test_of_several_processes_each_tells_what_no_other_does(monkeypatch, capsys, error, rank, local_rank, told):
    for name, value in {"RANK": rank, "WORLD_SIZE": 8, "LOCAL_RANK": local_rank}.items():
        monkeypatch.setenv(name, str(value))
    tell(error, debug=False)
    assert capsys.readouterr().err == told
