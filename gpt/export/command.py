"""The command that trains a run like one that there is: what differs from the defaults, as it is typed."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gpt.config import ROOT, leaves, shown

CONFIGS = ROOT / "configs"
CHOICES = ("model/attention", "model/position", "model/feedforward", "dataset", "tokenizer", "optimizer", "schedule")
UNSAID = ("name", "logger", "debug", "resume")
"""What does not make it another training."""


def command(settings: Mapping[str, Any]) -> str:
    """The command line.

    Args:
        settings: a run's, as plain data; what is not there is not told.
    """
    return shlex.join(["python", "train.py", *differing(settings)])


def differing(settings: Mapping[str, Any]) -> Iterator[str]:
    """What is typed, choices before their settings."""
    stored, defaults = leaves(settings), leaves(composed(CONFIGS / "train.yaml"))
    for choice in CHOICES:
        path = choice.replace("/", ".")
        name = stored.get(f"{path}.name")
        if isinstance(name, str) and name != defaults.get(f"{path}.name"):
            yield f"{choice}={name}"
            defaults |= leaves({path: composed(CONFIGS / choice / f"{name}.yaml")})
    for path, value in stored.items():
        if not path.endswith(".name") and path.split(".")[0] not in UNSAID and value != defaults.get(path):
            yield f"{path}={value if isinstance(value, str) else typed(value)}"


def composed(file: Path) -> dict[str, Any]:
    """A yaml with the options of its defaults in their places; {} where there is none."""
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for entry in content.pop("defaults", []):
        for group, name in entry.items() if isinstance(entry, dict) else ():
            if isinstance(name, str):
                content[group] = composed(file.parent / group / f"{name}.yaml")
    return content


def typed(value: Any) -> str:
    """A value as hydra reads it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else shown(value)
