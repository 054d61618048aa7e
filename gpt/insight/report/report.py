"""`python -m gpt report`: one page about a run, in its folder; train.py leaves it at the end of each training."""

import shlex
import warnings
from pathlib import Path

from gpt.config import Config, UserError
from gpt.files import nearby, refuse_unwritable, writing
from gpt.insight import page
from gpt.insight.record import read
from gpt.insight.report.web import as_html
from gpt.run import latest
from gpt.run_folder import read_settings

FILE = "report.html"


class ReportSettings(Config):
    """Write a page about one run: its outcome, curves, samples, settings, data, and the command that repeats it.

    One file, which needs no network and no other file. At the end of a training train.py does the same.

    Examples:
        python -m gpt report
        python -m gpt report run=runs/mine to=mine.html
    """

    run: str = "latest"
    """The folder of the run, be it unfinished; latest is the newest one that holds a checkpoint."""
    to: str | None = None
    """The page's file; null: report.html in the run's folder, in place of the one that is there."""
    debug: bool = False
    """Show the whole traceback of an error in place of one line."""


def report(settings: ReportSettings, _: Path | None) -> None:
    """Write the page, and say where it is.

    Raises:
        UserError: there is no such run, its configuration cannot be read, or the page cannot be written.
        RunError: the disk is full.
    """
    if settings.to == "":
        raise UserError("to: expected a file, got nothing")
    folder = latest() if settings.run == "latest" else Path(settings.run)
    try:
        read_settings(folder)
    except UserError as error:
        raise UserError(f"run: {error}") from None
    file = folder / FILE if settings.to is None else Path(settings.to)
    refuse_unwritable("to", file.parent)
    with writing("to", file.parent):
        page.write(file, as_html(read(folder)))
    print(f"open {shlex.quote(nearby(file))}")


def leave_report(folder: Path) -> Path | None:
    """Write the page into the folder of a run that was trained; None where that fails: that does the run no harm."""
    try:
        return page.write(folder / FILE, as_html(read(folder)))
    except Exception as error:
        warnings.warn(f"{folder / FILE} is not written: {error}", stacklevel=2)
        return None
