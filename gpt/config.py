"""Typed, strict, frozen configurations, and choices between variants that live in files.

A *variant* is one python file with one `Variant` subclass: its configuration, which knows how to build what
it configures. The name of the file is the name in the config. A *choice* is a config field that takes any
variant of one package; only modules inside that package can be named, so a config from a stranger is data
and never code.
"""

import importlib
import pkgutil
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, core_schema

ROOT = Path(__file__).resolve().parents[1]
"""The checkout: `runs/`, `data/` and `configs/` are found here, whatever the working directory."""


LONGEST = 2000
"""Characters of a line that tells what is wrong, at most."""


def one_line(text: str) -> str:
    r"""`text` as one line that a terminal shows and does not obey; its middle is left out where it is long.

    It may hold names and words out of a file that anybody wrote.

    >>> one_line("two\nlines, \x1b[31mred")
    'two lines, \\x1b[31mred'
    """
    half = LONGEST // 2
    text = text if len(text) <= LONGEST else f"{text[: half - 1]}…{text[-half:]}"
    plain = "".join(_visible(c) for c in text)
    return plain if len(plain) <= LONGEST else one_line(plain)


def _visible(character: str) -> str:
    """A character, a space for a line's end or a tab, and in words what else controls a terminal."""
    if unicodedata.category(character) not in ("Cc", "Zl", "Zp"):
        return character
    return " " if character.isspace() else ascii(character)[1:-1]


class UserError(Exception):
    """A mistake of the user's, told in one line that says what is wrong, where, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class RunError(Exception):
    """A run that cannot go on through no mistake in what the user typed, told in one line."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class Config(BaseModel):
    """A typed configuration: unknown keys and wrong types are refused, and it never changes once made."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @classmethod
    def completed(cls, data: dict[str, Any], typed: Collection[str], run_dir: Path | None) -> dict[str, Any]:
        """What is to be checked in place of `data`, which was composed: here `data` itself.

        Settings that can go on from something stored override this: what was not typed comes from there.

        Args:
            data: all settings, as plain data.
            typed: the dotted paths that the command line sets, those of a recipe that it names among them.
            run_dir: the folder that the command line names for what comes of it.

        Raises:
            UserError: what was typed and what is stored do not go together.
        """
        return data


class Variant(Config):
    """The configuration of one variant of a choice; a subclass adds the variant's settings and `build`."""

    name: str
    """The variant: the name of its file."""

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """What this configures; each choice's own contract says what `build` takes and gives."""
        raise NotImplementedError(f"{type(self).__name__} must define build")


@cache
def variant_names(package: str) -> tuple[str, ...]:
    """The variants that live in `package`, sorted: its modules, one each; `_private` modules are none."""
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


@cache
def variant_class(package: str, name: str) -> type[Variant]:
    """The one `Variant` subclass defined in module `name` of `package`, `name` being one of `variant_names`.

    Raises:
        TypeError: the module defines none, or several.
    """
    module = importlib.import_module(f"{package}.{name}")
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Variant) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} must define exactly one Variant, it defines {len(found)}")
    return found[0]


class Choice:
    """A field's annotation: any variant of `package`.

    `path` is the field's dotted path, told in errors; in a mapping from name to variant, `logger.*`, the star
    stands for the name.
    """

    def __init__(self, package: str, path: str) -> None:
        self.package = package
        self.path = path

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate by this choice; dump what was chosen by its own fields."""
        return core_schema.no_info_plain_validator_function(
            self.validate,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda v: v.model_dump()),
        )

    def validate(self, value: Any) -> Variant:
        """The variant that `value`, a mapping with a `name`, describes.

        Raises:
            UserError: no such variant, an unknown setting of it, or a wrong type.
        """
        if isinstance(value, Variant) and value.__module__ == f"{self.package}.{value.name}":
            return value
        names = variant_names(self.package)
        field = self.path.removesuffix(".*")
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            raise UserError(f"{field}: expected one of {', '.join(names)} and its settings, got {shown(value)}")
        name = value["name"]
        if name not in names:
            raise UserError(f"{field}: there is no {name!r}; {nearest(name, names)}there are {', '.join(names)}")
        for key in value.keys() - variant_class(self.package, name).model_fields.keys():
            if having := [other for other in names if key in variant_class(self.package, other).model_fields]:
                choice = field.replace(".", "/")
                listed = " or ".join(f"{choice}={other}" for other in having)
                raise UserError(f"{field}.{key}: {choice}={name} has no such setting; it belongs to {listed}")
        return parse(variant_class(self.package, name), value, self.path.replace("*", name))


C = TypeVar("C", bound=Config)


def parse(cls: type[C], data: Mapping[str, Any], path: str = "") -> C:
    """`data` as a checked `cls`; `path` is where it stands in the whole configuration, for messages.

    Raises:
        UserError: the first thing that is wrong, with its dotted path; for an unknown key the nearest one.
    """
    try:
        return cls.model_validate(dict(data))
    except ValidationError as error:
        raise UserError(describe(cls, error, path, data)) from None


def describe(cls: type[Config], error: ValidationError, path: str, data: Mapping[str, Any]) -> str:
    """The first of a validation's errors, unknown keys before others, as one line."""
    errors = error.errors()
    first = min(errors, key=lambda e: e["type"] != "extra_forbidden")
    here = _location(first, data)
    where = ".".join([path, *here] if path else here)
    match first["type"]:
        case "extra_forbidden":
            known = [f"{path}.{key}" if path else key for key in settings_of(cls)]
            return f"{where}: there is no such setting; {nearest(where, known)}see --help for all of them"
        case "missing":
            return f"{where}: this setting is required"
        case "value_error":
            return f"{where}: {first['ctx']['error']}" if where else str(first["ctx"]["error"])
        case _:
            wanted = dict.fromkeys(_wanted(e) for e in errors if _location(e, data) == here)
            return f"{where}: expected {' or '.join(wanted)}, got {shown(first['input'])}"


def _location(error: ErrorDetails, data: Any) -> list[str]:
    """The keys that lead to what is wrong, less the members of a union that pydantic names after them."""
    keys: list[str] = []
    for key in error["loc"]:
        there = key in data if isinstance(data, Mapping) else isinstance(data, list) and isinstance(key, int)
        if not there and error["type"] != "missing":
            break
        keys.append(str(key))
        data = data[key] if there else None
    return keys


def _wanted(error: ErrorDetails) -> str:
    """What an error's message says was expected: 'a valid integer'."""
    message = error["msg"].removeprefix("Input should be ")
    return message[0].lower() + message[1:]


class Short(Repr):
    """Writes no more than is shown of a value that may be huge: lists in lists, as YAML's aliases make them."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxdict = 2, 8, 8
        self.maxstring = self.maxlong = self.maxother = 200

    def repr_int(self, x: int, level: int) -> str:
        """Python itself refuses to write a number of more than 4,300 digits."""
        return super().repr_int(x, level) if x.bit_length() < 10_000 else f"a number of {x.bit_length()} bits"


def shown(value: Any) -> str:
    """`value` as the user would write it, cut where it is long."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else Short().repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def leaves(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by dotted path.

    >>> leaves({"a": {"b": 1}, "c": [2]})
    {'a.b': 1, 'c': [2]}
    """
    found: dict[str, Any] = {}
    for key, value in data.items():
        found |= leaves(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def settings_of(cls: type[Config], prefix: str = "") -> Iterator[str]:
    """The dotted paths of the settings of `cls`, of nested configs, and of all variants of its choices."""
    for key, field in cls.model_fields.items():
        yield prefix + key
        for path, nested in configs_in(field, prefix + key):
            yield from settings_of(nested, f"{path}.")


def configs_in(field: FieldInfo, path: str) -> Iterator[tuple[str, type[Config]]]:
    """Each config that `field`, which stands at `path`, can hold, and where it would stand.

    A choice gives all its variants; in a mapping of choices each stands under its own name.
    """
    parts = [*field.metadata, *_parts(field.annotation)]
    choices = [part for part in parts if isinstance(part, Choice)]
    for choice in choices:
        for name in variant_names(choice.package):
            where = f"{path}.{name}" if get_origin(field.annotation) is dict else path
            yield where, variant_class(choice.package, name)
    if not choices:
        yield from ((path, part) for part in parts if isinstance(part, type) and issubclass(part, Config))


def _parts(annotation: Any) -> Iterator[Any]:
    """An annotation and all that stands inside its brackets."""
    yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def nearest(wrong: str, right: Iterable[str]) -> str:
    """'did you mean X? ' with the nearest of `right`, by last part, then by the whole path; '' for none.

    >>> nearest("model.layers", ["model.n_layer", "model.attention.layers"])
    'did you mean model.n_layer? '
    """
    paths: dict[str, list[str]] = {}
    for path in right:
        paths.setdefault(path.rpartition(".")[2], []).append(path)
    group, _, last = wrong.rpartition(".")
    beside = [part for part, there in paths.items() if group and f"{group}.{part}" in there]
    if near := get_close_matches(last, beside, n=1, cutoff=0.7):
        return f"did you mean {group}.{near[0]}? "
    begun = [part for part in paths if len(last) > 2 and part.startswith(last)]  # temp is temperature, not stream
    close = begun or get_close_matches(last, paths, n=1, cutoff=0.5)  # rl is lr at 0.5
    if not close:
        return ""
    path = max(paths[close[0]], key=lambda path: SequenceMatcher(None, wrong, path).ratio())
    return f"did you mean {path}? "
