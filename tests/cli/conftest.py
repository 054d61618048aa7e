"""A script of our own beside a small tree of configurations, run in this process or in one of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import Field

from gpt.cli import compose, main
from gpt.config import Choice, Config, UserError, Variant

TREE = {
    "run.yaml": "defaults:\n  - model: small\n  - optimizer: adam\n  - logger: [console]\n"
    "  - _self_\n  - experiment: null\nname: gpt\nsteps: 3\n",
    "plain.yaml": "steps: 3\n",
    "model/small.yaml": "defaults:\n  - position: rope\n  - _self_\nn_layer: 4\n",
    "model/large.yaml": "# Ten times as deep.\ndefaults:\n  - position: none\n  - _self_\nn_layer: 40\n",
    "model/position/rope.yaml": "name: rope\n",
    "model/position/none.yaml": "name: none\n",
    "optimizer/adam.yaml": "name: adam\nlr: 0.001\n",
    "optimizer/sgd.yaml": "# No preset.\nname: sgd\nlr: 0.5\n",
    "logger/console.yaml": "console:\n  name: console\n",
    "logger/board.yaml": "board:\n  name: board\n",
    "experiment/debug.yaml": "# @package _global_\ndebug: true\n",
    "experiment/fast.yaml": "# @package _global_\n# Quick: one step.\n# Then it ends.\n"
    "defaults:\n  - override /optimizer: sgd\nsteps: 1\n",
}

PARTS = "parts_for_cli_tests"
VARIANTS = {
    "position": {"rope": "    base: float = 10000.0\n", "none": ""},
    "optimizer": {
        "adam": "    lr: float = 0.1\n    '''Peak learning rate.'''\n",
        "sgd": "    lr: float = 0.1\n    momentum: float = 0.0\n",
    },
    "logger": {"console": "", "board": ""},
}


class Dataset(Config):
    """Text."""

    path: str = "here"
    """Where it lies."""


class Model(Config):
    """Sizes."""

    n_layer: int = Field(4, ge=1)
    """Number of blocks."""
    position: Annotated[Variant, Choice(f"{PARTS}.position", "model.position")]
    """Where a token stands."""


class Settings(Config):
    """Do one thing well.

    Examples:
        python run.py steps=4
    """

    name: str = "x"
    """What the run is called."""
    prompt: str = ""
    """The text to continue."""
    stop: str = ""
    """Where to end."""
    run: str = "latest"
    """Which run."""
    steps: int
    """Updates."""
    budget: str | None = None
    """Train for this long."""
    debug: bool = False
    """Show the traceback of an error."""
    dataset: Dataset = Dataset()
    """Text."""
    model: Model
    """Sizes."""
    optimizer: Annotated[Variant, Choice(f"{PARTS}.optimizer", "optimizer")]
    """How gradients become updates."""
    logger: dict[str, Annotated[Variant, Choice(f"{PARTS}.logger", "logger.*")]]
    """Where metrics are shown."""


TASKS = """
import os, signal, sys, time, warnings
from contextlib import suppress
from pathlib import Path
sys.path[:0] = [{here!r}, {tests!r}]
from conftest import Settings
from gpt import cli

def task(settings, run_dir):
    if run_dir:
        (run_dir / "made").write_text(settings.prompt)
    match settings.budget:
        case "sleep": print("asleep", flush=True); time.sleep(60)
        case "drop":  # as C code does with what is raised while it runs
            with suppress(BaseException): signal.raise_signal(signal.SIGTERM)
            raise ValueError("what came of that")
        case "warn": warnings.warn("mind this")
        case "pipe": raise BrokenPipeError("a worker is gone")
        case "endless":
            while True: print("y" * 1000)
        case _: print([settings.name, settings.prompt, settings.dataset.path, run_dir])
    return {{"square": str(settings.steps ** 2)}}

def claim(wanted, name):
    folder = wanted or Path("runs") / name
    folder.mkdir(parents=True)
    return folder

if __name__ == "__main__":
    cli.main("run", Settings, task, Path({configs!r}), claim=claim)
"""


class Script(NamedTuple):
    """A script in a folder of its own, beside its tree of configurations."""

    file: Path
    configs: Path
    settings: type[Settings] = Settings

    def __call__(self, *argv: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, self.file, *argv],
            cwd=cwd or self.file.parent,
            env={**os.environ, **env},
            capture_output=True,
            encoding="utf-8",
        )

    def start(self, *argv: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, self.file, *argv], cwd=cwd, stdout=pipe, stderr=pipe, text=True)

    def compose(self, *argv: str) -> tuple[Settings, Path | None]:
        return compose("run", argv, Settings, self.configs)

    def composed(self, *argv: str) -> Settings:
        return self.compose(*argv)[0]

    def refused(self, *argv: str) -> str:
        with pytest.raises(UserError) as caught:
            self.compose(*argv)
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture(scope="session")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    folder = tmp_path_factory.mktemp("script")
    for name, text in TREE.items():
        _write(folder / "configs" / name, text)
    for package, variants in VARIANTS.items():
        _write(folder / PARTS / package / "__init__.py", "")
        for name, body in variants.items():
            about = f"class V(Variant):\n    '''The {name} one.'''\n\n{body}"
            _write(folder / PARTS / package / f"{name}.py", f"from gpt.config import Variant\n{about}")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        text = TASKS.format(here=str(folder), tests=str(Path(__file__).parent), configs=str(folder / "configs"))
        _write(folder / "work" / "run.py", text)
        yield Script(folder / "work" / "run.py", folder / "configs")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


class Ended(NamedTuple):
    """How `main` ended in this process."""

    code: object
    out: str
    err: str


@pytest.fixture
def end(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Runs `main` in an empty working directory, with a task that raises `error`, or one of the test's own."""

    def end(*argv: str, error: BaseException | None = None, **more: Any) -> Ended:
        def task(settings: Settings, run_dir: Path | None) -> None:
            print("at work", settings.steps, run_dir)
            if error is not None:
                raise error

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["run.py", *argv])
        code: object = 0
        try:
            main("run", Settings, **{"task": task, "config_dir": script.configs} | more)
        except SystemExit as ended:
            code = ended.code
        if not more:
            assert list(tmp_path.iterdir()) == [], "something was left behind"
        return Ended(code, *capsys.readouterr())

    return end
