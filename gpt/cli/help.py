"""The page that `--help` prints: made from the typed settings and the folders of choices, so never stale."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from textwrap import indent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from omegaconf import DictConfig, OmegaConf
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.console import Group
from rich.table import Table
from rich.text import Text

from gpt.config import Config, Variant, configs_in
from gpt.literal import is_text

SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
"""How pydantic's bounds read."""

VALUES = "literal text is all that follows the first =, whatever it holds; a list is KEY=[a,b]"

SWEEPS = "run a job for each combination of several values: KEY=a,b GROUP=a,b 'KEY=range(1,4)' 'GROUP=glob(*)'"

MISSING = "???"
"""How OmegaConf writes that a value must be given."""

Row = tuple[Text, Text]


@dataclass(frozen=True)
class Option:
    """What can be chosen in a group."""

    names: Sequence[str]
    chosen: Sequence[str]
    """Those chosen by default."""
    file: Callable[[str], Path]
    """Where a name's settings stand."""

    def values(self, name: str) -> Any:
        """The settings that a name comes with."""
        file = self.file(name)
        return OmegaConf.to_container(OmegaConf.load(file)) if file.exists() else {}

    def about(self, name: str) -> str:
        """What a preset, which builds on other files or sets more than its group, says of itself; '' for a variant."""
        lines = self.file(name).read_text(encoding="utf-8").splitlines()
        comment = [line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)]
        package = [line for line in comment if line.startswith("@package")]
        return " ".join(comment[len(package) :]) if package or "defaults:" in lines else ""


def options_of(config: DictConfig, groups: Mapping[str, Sequence[str]], config_dir: Path) -> dict[str, Option]:
    """The options of those `groups` that `config`, which was composed without arguments, has a place for."""
    options = {}
    for group, names in groups.items():
        here = OmegaConf.select(config, group.replace("/", "."))
        choices = config.hydra.runtime.choices
        # Of a group that takes several at once hydra keeps no record; each stands under its own name.
        chosen = [choices[group]] if group in choices else list(here) if isinstance(here, DictConfig) else None
        if chosen is not None:
            options[group] = Option(names, chosen, partial(_file, config_dir / group))
    return options


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.yaml"


def page(script: str, settings: type[Config], defaults: Mapping[str, Any], options: Mapping[str, Option]) -> Group:
    """What `script` does, how it is called, what can be chosen, and all that can be set.

    Args:
        script: the file's name.
        settings: its typed settings. Their docstring is the introduction, with an "Examples:" part for the
            examples; the docstrings of their fields are the descriptions.
        defaults: the composed configuration of a call without arguments.
        options: the choices, by group.
    """
    about = docstring(settings)
    usage = f"python {script} {'[GROUP=NAME ...] ' if options else ''}[KEY=VALUE ...]"
    flags = [
        (Text("KEY=VALUE", "cyan"), Text(VALUES)),
        (Text("-m, --multirun", "cyan"), Text(SWEEPS)),
        (Text("--cfg", "cyan"), Text("print the checked configuration as YAML, and do nothing more")),
        (Text("-h, --help", "cyan"), Text("print this page")),
    ]
    parts = [Text(script, "bold"), Text(_reflowed(about[""])), *_part("Usage", _indented(usage), Text(), _grid(flags))]
    if "Examples" in about:
        parts += _part("Examples", _indented(about["Examples"]))
    if options:
        parts += _part("Choices (GROUP=NAME; * is the default)", _grid(choices(options)))
    if named := list(presets(options)):
        parts += _part("Presets (GROUP=NAME; what is typed beside one comes before it)", _grid(named))
    parts += _part("Settings (KEY=default)", _grid(settings_of(settings, defaults, options)))
    return Group(*parts)


def _part(title: str, *body: Text | Table) -> list[Text | Table]:
    return [Text(f"\n{title}", "bold"), *body]


def _reflowed(text: str) -> str:
    """Paragraphs without the line ends of the source: the terminal breaks lines where it needs to."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _indented(text: str) -> Text:
    return Text(indent(text, "  "))


def _grid(rows: Iterable[Row]) -> Table:
    """Two columns: names that never wrap, and what they mean."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for left, right in rows:
        table.add_row(Text("  ") + left, right)
    return table


def docstring(cls: type) -> dict[str, str]:
    """A class's docstring by its parts: the introduction under '', then those with a title."""
    about, *titled = re.split(r"\n+(\w+):\n(?=\s)", inspect.cleandoc(cls.__doc__ or ""))
    return {
        "": about,
        **{t: inspect.cleandoc(text) for t, text in zip(titled[::2], titled[1::2], strict=True)},
    }


def choices(options: Mapping[str, Option]) -> Iterator[Row]:
    """A row for each group: its name, and its options, the default ones marked by a star."""
    for group, option in sorted(options.items()):
        names = [Text(f"{name}*", "bold") if name in option.chosen else Text(name) for name in option.names]
        yield Text(group, "cyan"), Text("  ").join(names)


def presets(options: Mapping[str, Option]) -> Iterator[Row]:
    """A row for each option that is a preset, and what it says of itself."""
    for group, option in sorted(options.items()):
        for name in option.names:
            if about := option.about(name):
                yield Text(f"{group}={name}", "cyan"), Text(about)


def settings_of(
    cls: type[Config], values: Mapping[str, Any], options: Mapping[str, Option], prefix: str = ""
) -> Iterator[Row]:
    """A row for each setting of `cls`, which stands at `prefix`, then those of the configs inside of it."""
    nested = []
    for key, field in cls.model_fields.items():
        configs = list(configs_in(field, prefix + key))
        if configs:
            nested.append((key, configs))
        elif not (key == "name" and issubclass(cls, Variant)):
            yield _setting(prefix + key, field, values.get(key, field.get_default(call_default_factory=True)))
    for key, configs in nested:
        group = (prefix + key).replace(".", "/")
        yield Text(), Text()
        for path, config in configs:
            title, inside = _nested(group, config, values.get(key) or {}, options)
            yield title, Text(_paragraph(docstring(config)[""]), "bold")
            yield from settings_of(config, inside, options, f"{path}.")


def _nested(
    group: str, config: type[Config], value: Mapping[str, Any], options: Mapping[str, Option]
) -> tuple[Text, Mapping[str, Any]]:
    """How a nested config is picked, and its default settings, `value` being those of the default choice."""
    if not issubclass(config, Variant):
        return Text(f"{group}.…", "bold cyan"), value
    name = config.__module__.rpartition(".")[2]
    chosen = value if value.get("name") == name else value.get(name)
    if isinstance(chosen, Mapping):
        return Text(f"{group}={name} *", "bold cyan"), chosen
    return Text(f"{group}={name}", "bold cyan"), options[group].values(name) if group in options else {}


def _setting(path: str, field: FieldInfo, default: Any) -> Row:
    required = default in (PydanticUndefined, MISSING)
    shown = "" if required else _typed(default)
    kind = "literal text" if is_text(path) else _kind(field.annotation, field.metadata)
    return (
        Text("  ") + Text(f"{path}=", "cyan") + Text(shown if len(shown) <= 24 else f"{shown[:23]}…"),
        Text(f"{_paragraph(field.description or '')} ") + Text(f"({kind}{', required' if required else ''})", "dim"),
    )


def _paragraph(text: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def _typed(value: Any) -> str:
    """A value as it is typed on the command line."""
    if isinstance(value, list):
        return f"[{','.join(map(_typed, value))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _kind(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """A type as words, with its bounds: 'int >= 1 | null'."""
    bounds = [f"{s} {getattr(m, name)}" for m in metadata for name, s in SIGNS.items() if hasattr(m, name)]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        name = _kind(inner[0], inner[1:])
    elif origin is Literal:
        name = " | ".join(map(_typed, inner))
    elif origin in (Union, UnionType):
        name = " | ".join(_kind(member) for member in inner)
    elif inner:
        name = f"{origin.__name__}[{', '.join(_kind(member) for member in inner)}]"
    else:
        name = "null" if annotation is NoneType else getattr(annotation, "__name__", str(annotation))
    return f"{name} {', '.join(bounds)}".strip()
