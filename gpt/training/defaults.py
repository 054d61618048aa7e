"""What train.py does unless told otherwise, read from configs/ as hydra composes it, without hydra."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from gpt.config import ROOT, parse
from gpt.training.settings import TrainSettings

CONFIGS = ROOT / "configs"


@cache
def default_settings() -> Mapping[str, Any]:
    """All settings of a run for which nothing was typed."""
    return parse(TrainSettings, composed("", "train")).model_dump()


@cache
def variant_defaults(choice: str, name: str) -> Mapping[str, Any]:
    """The settings that a variant comes with; none for a name that there is not.

    Args:
        choice: the variant's dotted path: model.attention; of several at once the name is part of it: logger.wandb.
        name: the variant's, as a run's folder has it.
    """
    group, _, last = choice.rpartition(".")
    for place in (choice, group):
        folder = CONFIGS / place.replace(".", "/")
        if place and folder.is_dir() and name in {file.stem for file in folder.glob("*.yaml")}:
            content = composed(place.replace(".", "/"), name)
            return content if place == choice else content.get(last, {})
    return {}


def composed(group: str, name: str) -> dict[str, Any]:
    """The content of a yaml file, and below it what its list of defaults names.

    What a file itself says comes last, and is not mixed with what it names: no file that is read here says anything of
    a part that it also names.
    """
    content = yaml.safe_load((CONFIGS / group / f"{name}.yaml").read_text(encoding="utf-8"))
    named: dict[str, Any] = {}
    for entry in content.pop("defaults", []):
        for part, chosen in entry.items() if isinstance(entry, dict) else ():
            names = chosen if isinstance(chosen, list) else [chosen] if chosen else []
            for each in names:
                named[part] = {**named.get(part, {}), **composed(f"{group}/{part}".lstrip("/"), each)}
    return {**named, **content}
