"""`python -m gpt inspect`: open a run, have it read a prompt, show what was seen."""

import shlex
from pathlib import Path

from gpt.config import UserError
from gpt.files import nearby, refuse_unwritable, writing
from gpt.insight.inspect import pictures, text, web
from gpt.insight.inspect.reading import read
from gpt.insight.inspect.settings import InspectSettings
from gpt.run import Run, load

FOLDER = "inspect"
"""In the run's folder."""


def inspect(settings: InspectSettings, _: Path | None) -> None:
    """Print what was seen, leave pictures and the page, and say where the page is."""
    run = load(settings.run, settings.device, settings.precision)
    folder = Path(settings.to) if settings.to is not None else beside_checkpoints(run)
    refuse_unwritable("to", folder)
    reading = read(run, settings)
    with writing("to", folder):
        page = web.write(reading, folder)  # first: it is there even where what reads the output ends early, as `| head`
    text.show(reading)
    with writing("to", folder):
        pictures.draw(reading, folder)
    print(f"\nopen {shlex.quote(nearby(page))}")


def beside_checkpoints(run: Run) -> Path:
    """`inspect` in the run's folder; never in a checkpoint's, which must hold nothing but what was saved.

    Raises:
        UserError: it is a link, and so may lead out of the run's folder; or the model is another program's.
    """
    if not run.checkpoint:
        raise UserError(f"to: {nearby(run.folder)} is another program's, and stays as it is; name a folder by to=")
    home, point = run.folder.absolute(), run.checkpoint.folder.absolute()
    if home == point:
        home = point.parent.parent if point.parent.name == "checkpoints" else point.parent
    if (home / FOLDER).is_symlink():
        raise UserError(f"to: {home / FOLDER} is a link out of the run's folder; name a folder by to=")
    return home / FOLDER
