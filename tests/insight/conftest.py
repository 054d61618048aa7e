"""Shared by the tests of studies."""

import html
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from gpt.__main__ import main
from gpt.cli import compose
from gpt.insight.study import Context
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.settings import TrainSettings

BYTES = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)

BEGIN = "const told = { errors: ERRORS };"
END = """
told.wider = document.documentElement.scrollWidth > innerWidth;
document.body.append(Object.assign(document.createElement("pre"), { id: "told", textContent: JSON.stringify(told) }));
"""


class Told:
    """A progress reporter that remembers what it was told."""

    def __init__(self) -> None:
        self.total = self.done = 0.0

    @contextmanager
    def __call__(self, total: float) -> Iterator[Callable[[float], None]]:
        self.total += total
        yield self.advance

    def advance(self, part: float) -> None:
        self.done += part


@pytest.fixture
def told() -> Told:
    """What a study's progress reporter was told: `total`, `done`."""
    return Told()


@pytest.fixture
def context(told: Told) -> Context:
    """To run a study in."""
    return Context(torch.device("cpu"), seed=1337, progress=told)


SMALL = ("model.n_layer=1", "model.context=16", "model.d_model=8", "model.n_head=2", "tokenizer=byte", "logger=[]")


@pytest.fixture
def trained(tmp_path, make_run, state_of):
    """Writes the folder of a run with such metrics, a row of training and one of validation every 10 steps."""

    def build(name, *argv, losses=(5.0, 4.5, 4.0), speeds=(), done=30):
        settings, _ = compose("train", [*SMALL, "steps=30", *argv], TrainSettings)
        run = make_run(tmp_path / name, settings=settings.model_dump(), steps=())
        for step, loss in enumerate(losses, 1):
            counts = {"step": 10 * step, "tokens": 1000 * step, "elapsed": 10.0 * step}
            speed = speeds[step - 1] if speeds else 200.0
            run.log({**counts, "loss": loss + 0.5, "lr": 0.1, "grad_norm": 1.5, "tokens_per_second": speed})
            run.log({**counts, "validation_loss": loss, "validation_bits_per_byte": loss - 1.0})
        if done:
            last = losses[-1] if math.isfinite(losses[-1]) else None
            run.save(GPT(BYTES).state_dict(), {}, {**state_of(done, last), "elapsed": float(done)})
        return run.folder

    return build


@pytest.fixture
def verb(monkeypatch, capfd):
    """Types `python -m gpt VERB …`; the exit code, and what is printed on both outputs."""

    def run(*argv):
        monkeypatch.setattr(sys, "argv", ["gpt", *map(str, argv)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def browser(tmp_path):
    """Opens a page, does what a script says, which notes what it sees in `told`; that, and what the console said."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs chromium or google-chrome")

    def open_page(file, script, width=1280):
        early = "<script>const ERRORS = []; onerror = (message) => { ERRORS.push(message); };</script><style>"
        page = file.read_text(encoding="utf-8").replace("<style>", early, 1)
        clicked = tmp_path / "clicked.html"
        clicked.write_text(page.replace("</body>", f"<script>{BEGIN}{script}{END}</script></body>"), encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--window-size={width},900"]
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [program, *flags, profile, "--dump-dom", clicked.as_uri()]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
        told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.S)
        assert told, done.stderr
        return json.loads(html.unescape(told[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return open_page
