"""Typed, strict, frozen configurations, and choices between variants that live in files.

A *variant* is one python file with one `Variant` subclass: its configuration, which knows how to build what it
configures. The name of the file is the name in the config. A *choice* is a config field that takes any variant of
one package; only modules inside that package can be named, so a config from a stranger is data and never code.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

ROOT = Path(__file__).resolve().parents[1]
"""The checkout: `runs/`, `data/` and `configs/` are found here, whatever the working directory."""


class UserError(Exception):
    """A mistake of the user's, told in one line that says what is wrong, where, and what to do."""


class Config(BaseModel):
    """A typed configuration: unknown keys and wrong types are refused, and nothing changes after it is made."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Variant(Config):
    """The configuration of one variant of a choice; a subclass adds the variant's settings and a `build` method."""

    name: str
    """The variant: the name of its file."""


@cache
def variant_names(package: str) -> tuple[str, ...]:
    """The names of the variants that live in `package`, sorted: its modules, one each."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(importlib.import_module(package).__path__)))


@cache
def variant_class(package: str, name: str) -> type[Variant]:
    """The one `Variant` subclass defined in module `name` of `package`; `name` must be one of `variant_names`."""
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
    """A field's annotation: any variant of `package`. `path` is the field's dotted path, told in errors."""

    everything: ClassVar[dict[str, str]] = {}
    """Dotted path -> package of every choice made so far."""

    def __init__(self, package: str, path: str) -> None:
        self.package = package
        self.path = path
        self.everything[path] = package

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
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            raise UserError(f"{self.path}: expected one of {self.listed()} and its settings, got {value!r}")
        name = value["name"]
        if name not in variant_names(self.package):
            raise UserError(
                f"{self.path}: no variant {name!r}; {nearest(name, variant_names(self.package))}"
                f"there are {self.listed()}"
            )
        return parse(variant_class(self.package, name), value, self.path)

    def listed(self) -> str:
        """The variants' names as a phrase."""
        return ", ".join(variant_names(self.package))


C = TypeVar("C", bound=Config)


def parse(cls: type[C], data: Mapping[str, Any], path: str = "") -> C:
    """`data` as a checked `cls`; `path` is where it stands in the whole configuration, for messages.

    Raises:
        UserError: the first thing that is wrong, with its dotted path and, for an unknown key, the nearest right one.
    """
    try:
        return cls.model_validate(dict(data))
    except ValidationError as error:
        raise UserError(describe(cls, error, path)) from None


def describe(cls: type[Config], error: ValidationError, path: str) -> str:
    """The first of a validation's errors, unknown keys before others, as one line."""
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    where = ".".join([*([path] if path else []), *(str(part) for part in first["loc"])])
    match first["type"]:
        case "extra_forbidden":
            known = [f"{path}.{key}" if path else key for key in settings_of(cls)]
            return f"{where}: there is no such setting; {nearest(where, known)}see --help for all of them"
        case "missing":
            return f"{where}: this setting is required"
        case "value_error":
            return f"{where}: {first['ctx']['error']}" if where else str(first["ctx"]["error"])
        case _:
            return f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}, got {first['input']!r}"


def settings_of(cls: type[Config], prefix: str = "") -> Iterator[str]:
    """The dotted paths of `cls`'s settings, those of nested configs included, of choices all their variants'."""
    for key, field in cls.model_fields.items():
        yield prefix + key
        for meta in field.metadata:
            if isinstance(meta, Choice):
                for name in variant_names(meta.package):
                    yield from settings_of(variant_class(meta.package, name), f"{prefix}{key}.")
        if isinstance(field.annotation, type) and issubclass(field.annotation, Config) and not field.metadata:
            yield from settings_of(field.annotation, f"{prefix}{key}.")


def nearest(wrong: str, right: Any) -> str:
    """'did you mean X? ' with the nearest of `right` to `wrong`, by the whole path or by its last part; else ''."""
    candidates = sorted(set(right))
    same_last_part = [c for c in candidates if c.rpartition(".")[2] == wrong.rpartition(".")[2]]
    close = same_last_part or get_close_matches(wrong, candidates, n=1, cutoff=0.6)
    if not close:
        by_last_part = {c.rpartition(".")[2]: c for c in candidates}
        close = [by_last_part[m] for m in get_close_matches(wrong.rpartition(".")[2], by_last_part, n=1)]
    return f"did you mean {close[0]}? " if close else ""
