"""The command that repeats a run: what has to be typed for train.py to compose its settings again."""

from collections.abc import Mapping
from typing import Any

from gpt.config import leaves
from gpt.literal import typed
from gpt.training.defaults import default_settings, variant_defaults

INHERITED = ("model", "tokenizer")
"""What a run that begins with another's weights takes from there, unless it is typed."""


def command(settings: Mapping[str, Any]) -> list[str]:
    """The words of the command, to be quoted for a shell; what is as train.py has it anyway is left out.

    A recipe or a preset is told by what it sets, so that it may change later.

    Args:
        settings: the run's, checked, as plain data.
    """
    wanted = leaves(settings)
    choices, base = chosen(settings)
    values = [typed(path, value) for path, value in wanted.items() if path not in base or base[path] != value]
    return ["python", "train.py", *choices, *values]


def chosen(settings: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The choices to type, and the settings by dotted path that a run then has."""
    defaults, choices = dict(default_settings()), []
    loggers = list(settings["logger"])
    if loggers != list(defaults["logger"]):
        choices.append(typed("logger", loggers))
    defaults["logger"] = {name: variant_defaults(f"logger.{name}", name) for name in loggers}
    base = leaves(defaults)
    if settings["init"]:
        base = {path: value for path, value in base.items() if path.split(".")[0] not in INHERITED}
    for path, name in leaves(settings).items():
        choice = path.removesuffix(".name")
        if not path.endswith(".name") or choice.startswith("logger.") or base.get(path) == name:
            continue
        choices.append(typed(choice.replace(".", "/"), name))
        base = {path: value for path, value in base.items() if not path.startswith(f"{choice}.")}
        if not (settings["init"] and choice.split(".")[0] in INHERITED):
            base |= leaves(variant_defaults(choice, name), f"{choice}.")
        base[path] = name
    return choices, base
