"""What is told on standard error: a warning, an error, a signal, each in one line; and the exit code."""

import errno
import io
import os
import select
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from gpt.config import RunError, UserError, one_line
from gpt.launch import local_rank, rank
from gpt.signals import Interrupted

PATH_ERRORS = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EROFS, errno.ELOOP,
}  # fmt: skip
"""What goes wrong with a path that the user named."""


class Ending(NamedTuple):
    """What came of something that did not go well."""

    code: int
    """To exit with: 2 for the user's mistake, 128 and its number for a signal, 1 for anything else."""
    line: str
    """What is wrong; empty where there is nobody to tell."""


@contextmanager
def plain_words() -> Iterator[None]:
    """Within, a warning is one line, and each is given anew; no output ends the program over a character."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or a file in an old encoding.
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        pass  # which makes Python forget the warnings that it has given
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def ending(error: BaseException, debug: bool) -> Ending:
    """How `error` ends a script; `debug` tells that its traceback is shown anyway."""
    match error:
        case Interrupted():
            return Ending(128 + error.number, str(error))
        case KeyboardInterrupt():
            return Ending(130, "interrupted")
        case BrokenPipeError() if hasattr(select, "poll") and _reader_is_gone():
            return Ending(1, "")
        case UserError() | RunError():
            return Ending(2 if isinstance(error, UserError) else 1, str(error))
        case OSError() if error.errno in PATH_ERRORS and error.filename:
            return Ending(2, one_line(f"{error.filename}: {error.strerror}; mend that, or name another path"))
        case _:
            hint = "" if debug else "; run again with debug=true for the traceback"
            return Ending(1, f"unexpected {type(error).__name__}: {one_line(str(error))}{hint}")


def tell(error: BaseException, debug: bool, where: str = "") -> Ending:
    """Tell on standard error how `error` ends a script, or the part of its work that `where` names.

    The line is all, but for an error's traceback where `debug`.
    """
    end = ending(error, debug)
    if is_told_by_another(error):
        return end
    if isinstance(error, Interrupted | KeyboardInterrupt):
        print(end.line, file=sys.stderr)
    elif end.line:
        if debug:
            traceback.print_exception(error)
        who = f"process {rank()}: " if rank() else ""
        print(f"error: {who}{where}{end.line}", file=sys.stderr)
    return end


def is_told_by_another(error: BaseException) -> bool:
    """Whether another process of the run tells the same: of a mistake the first on a machine, of a signal rank 0."""
    if isinstance(error, UserError):
        return local_rank() > 0
    return rank() > 0 and isinstance(error, Interrupted | KeyboardInterrupt)


def _reader_is_gone() -> bool:
    """Whether stdout's reader has closed it, as `| head` does; if so, nothing is sent there again."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    gone = bool(poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return gone
