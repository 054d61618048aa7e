"""Write docs/settings.md, the reference of all settings, from the typed configurations: `python docs/settings.py`."""

from importlib import import_module
from pathlib import Path
from typing import cast

from gpt.__main__ import VERBS
from gpt.cli import described
from gpt.cli.reference import chapter
from gpt.config import Config
from gpt.generation.settings import SampleSettings
from gpt.training.settings import TrainSettings

FILE = Path(__file__).with_suffix(".md")

INTRODUCTION = """\
# All settings

Written by `python docs/settings.py` from the typed configurations, as the pages of `--help` are. KEY=VALUE sets, and
GROUP=NAME chooses; what a chapter shares with one before it is not told again.
"""


def reference() -> str:
    """The whole document."""
    known: set[str] = set()
    lines = [INTRODUCTION]
    scripts: list[tuple[str, str, type[Config]]] = [
        ("train.py", "train", TrainSettings),
        ("sample.py", "sample", SampleSettings),
    ]
    for name, verb in VERBS.items():
        settings = cast(type[Config], getattr(import_module(verb.module), verb.settings))
        scripts.append((f"-m gpt {name}", name, settings))
    for script, config, settings in scripts:
        lines += chapter(f"python {script}", settings, *described(config), known)
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
