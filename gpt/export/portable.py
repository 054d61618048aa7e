"""Settings as they may be sent: no path tells of the folders of the machine that it was on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpt.config import ROOT
from gpt.interop.opening import PREFIXES


def portable(settings: Any, key: str = "") -> Any:
    """The settings, their absolute paths relative to the checkout, or of those elsewhere the last part.

    Args:
        settings: plain data, or one value.
        key: of the value, as a dotted path or the end of one: `init`, or ...path.

    >>> portable({"init": "hf:/home/ada/gpt2", "dataset": {"path": "/home/ada/a:b.txt", "separator": "/a/"}})
    {'init': 'hf:gpt2', 'dataset': {'path': 'a:b.txt', 'separator': '/a/'}}
    >>> portable("https://host/a.parquet", "dataset.path"), portable(str(ROOT / "gpt/*.py"), "dataset.path")
    ('https://host/a.parquet', 'gpt/*.py')
    """
    if isinstance(settings, Mapping):
        return {name: portable(value, str(name)) for name, value in settings.items()}
    if not isinstance(settings, str) or not (key.endswith("path") or key == "init"):
        return settings
    program, colon, _ = settings.partition(":")
    prefix = f"{program}:" if colon and program in PREFIXES else ""
    path = Path(settings.removeprefix(prefix))
    if not path.is_absolute():
        return settings
    return prefix + (path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name)
