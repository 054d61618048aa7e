"""Weights & Biases: a run's curves, configuration and samples on its server, or kept in the run's folder for later.

Nobody is asked for anything: without a key, or without a network, it writes to the folder, and says how to upload that.
All of it lies in the run's folder, in `wandb`. A run that is resumed goes on under its id. What was logged after the
checkpoint that it goes on from cannot be taken back there: those curves have a few steps twice, on the same axis. What
a killed process logged in its last 15 seconds is in metrics.csv alone.
"""

import json
import logging
import os
import secrets
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from gpt.files import nearby, read_json, write_whole
from gpt.runs import RUNS
from gpt.training.logger import Logger, LoggerConfig, Metrics, RunInfo, grouped

if TYPE_CHECKING:
    import wandb  # elsewhere imported where it is used: that takes half a second, of every run

START = 20
"""Seconds that the server has to answer at the start."""
FINISH = 25
"""Seconds that the last upload has."""
ROWS = 100
"""Samples in the table: each evaluation uploads all of it anew."""


class WandbConfig(LoggerConfig):
    """Curves, configuration and samples on the server of Weights & Biases."""

    name: Literal["wandb"] = "wandb"
    project: str = Field(default="tiny-gpt", min_length=1)
    """Where the run is filed."""
    entity: str | None = None
    """User or team that the project belongs to; null: the key's own."""
    mode: Literal["auto", "online", "offline"] = "auto"
    """online: with a key; offline: into the run's folder; auto: online where there is a key. WANDB_MODE goes before."""
    group: str | None = None
    """Runs of one group are shown together; null: a sweep's are, by its folder."""
    tags: list[str] = Field(default_factory=list)
    """Words to find the run by."""

    def build(self) -> Logger:
        """Does nothing before it is started."""
        return Wandb(self)


class Wandb(Logger):
    """A run on a server, or in a folder that can be uploaded."""

    def __init__(self, config: WandbConfig) -> None:
        self.config = config
        self.rows: list[list[Any]] = []

    def start(self, info: RunInfo) -> None:
        """Begin the run, or go on with it; takes a second, or `START` and a few where the server does not answer."""
        self.home = info.run.folder / "wandb"
        self.home.mkdir(exist_ok=True)
        self.state = self.home / "run.json"
        state = read_json(self.state) if self.state.is_file() else {}
        self.id = state.get("id") or secrets.token_hex(8)
        self.rows = [row for row in state.get("samples", []) if row[0] <= info.resumed_at]
        self._remember()
        with staying_in(self.home):
            self.run = self._open(info)
        self.run.define_metric("*", step_metric="step")

    def log(self, metrics: Metrics, progress: float) -> None:
        """As train/loss, validation/loss and so on, over `step`."""
        self.run.log(grouped(metrics))

    def sample(self, step: int, text: str) -> None:
        """Adds a row to the table `samples`; from many rows on, every second one goes."""
        import wandb

        self.rows.append([step, text])
        if len(self.rows) > ROWS:
            self.rows = self.rows[::-2][::-1]  # the newest stays
        self._remember()
        with staying_in(self.home):  # a table is copied there first
            self.run.log({"step": step, "samples": wandb.Table(columns=["step", "text"], data=self.rows)})

    def finish(self) -> None:
        """Upload the rest, if that takes no longer than `FINISH`; a run is marked as failed by an error, no signal."""
        try:
            self.run.finish(exit_code=int(isinstance(sys.exception(), Exception)))
        except TimeoutError:
            later(f"wandb: the upload did not end within {FINISH} s", self.home, "--include-online ")

    def _remember(self) -> None:
        """What resuming needs and a server would have to be asked for."""
        write_whole(self.state, json.dumps({"id": self.id, "samples": self.rows}))

    def _open(self, info: RunInfo) -> "wandb.Run":
        import wandb

        mode = choose_mode(self.config.mode, self.home)
        try:
            return self._init(info, mode)
        except Exception as error:  # whatever a server answers: the numbers are kept
            if mode != "online":
                raise
            wandb.teardown()  # else it holds on to the run's id
            later(f"wandb: {' '.join(str(error).split())}; writing offline", self.home)
            return self._init(info, "offline")

    def _init(self, info: RunInfo, mode: Literal["online", "offline", "disabled"]) -> "wandb.Run":
        import wandb

        folder = info.run.folder.absolute()
        *sweep, name = folder.relative_to(RUNS).parts if folder.is_relative_to(RUNS) else [folder.name]
        return wandb.init(
            dir=folder,
            id=self.id,
            resume="allow",
            name="/".join([*sweep, name]),
            config=dict(info.run.settings),
            mode=mode,
            project=self.config.project,
            entity=self.config.entity,
            group=self.config.group or "/".join(sweep) or None,
            tags=self.config.tags or None,
            reinit="create_new",  # a process may train several runs, one after the other
            settings=quiet(),
        )


def quiet() -> "wandb.Settings":
    """No word on the terminal, which belongs to the console logger; nothing of it captured; bounded waits; no links."""
    import wandb

    return wandb.Settings(
        silent=True,
        console="off",
        symlink=False,
        init_timeout=START,
        finish_timeout=FINISH,
        finish_timeout_raises=True,
    )


def choose_mode(wanted: str, home: Path) -> Literal["online", "offline", "disabled"]:
    """What is possible without asking anybody: offline where there is no key, with a warning that names `home`."""
    import wandb

    general = wandb.setup(settings=quiet()).settings.mode  # of WANDB_MODE, or `wandb offline`
    # Its log quotes the configuration, in the locale's encoding, which may not have the letters of a path.
    logging.getLogger("wandb").setLevel(logging.WARNING)
    if general == "disabled":
        return "disabled"
    if "offline" in (general, wanted) or general == "dryrun":
        return "offline"
    if wandb.login(prompt=False, verify=False):
        return "online"
    later("wandb: there is no key (WANDB_API_KEY, or `wandb login`), so it writes offline", home)
    return "offline"


def later(problem: str, home: Path, options: str = "") -> None:
    """Warn of what is not uploaded, and tell how it will be."""
    warnings.warn(f"{problem}; to upload: wandb sync {options}{shlex.quote(nearby(home))}", stacklevel=2)


@contextmanager
def staying_in(home: Path) -> Iterator[None]:
    """Within, what wandb leaves in the user's own folders goes to `home`, and it reports no errors of its own.

    Such a report makes a program that ends without a network wait for 20 seconds more. What the user has set stays.
    """
    ours = {"WANDB_DATA_DIR": str(home), "WANDB_CACHE_DIR": str(home / "cache"), "WANDB_ERROR_REPORTING": "false"}
    ours = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)
