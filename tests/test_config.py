"""Typed configurations and choices: what is accepted, and what is said about what is not."""

import importlib
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError, model_validator

from gpt.config import (
    LONGEST,
    Choice,
    Config,
    RunError,
    UserError,
    Variant,
    nearest,
    one_line,
    parse,
    settings_of,
    shown,
    variant_class,
    variant_names,
)

ADAM = """
from gpt.config import Variant

class Adam(Variant):
    lr: float = 0.001
    steps: int = 10
"""

SGD = """
from gpt.config import Variant

class Sgd(Variant):
    lr: float = 0.1
    momentum: float = 0.9
"""


@pytest.fixture(scope="module")
def optimizers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A package with two variants, a private module, and one module that is no variant."""
    folder = tmp_path_factory.mktemp("packages")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        name = "optimizers_for_test_config"
        _package(folder / name, {"adam": ADAM, "sgd": SGD, "_shared": ""})
        _package(folder / "broken_for_test_config", {"none": "", "two": ADAM + SGD})
        importlib.invalidate_caches()
        yield name


def _package(folder: Path, modules: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (folder / f"{name}.py").write_text(text)


class Model(Config):
    """Sizes."""

    n_layer: int = Field(4, ge=1)
    """Number of blocks."""
    dropout: float = 0.0
    """Share dropped."""
    norm: Literal["layernorm", "rmsnorm"] = "rmsnorm"
    """Which one."""


class Settings(Config):
    """A run."""

    name: str
    """What it is called."""
    steps: int | Literal["auto"] = 3
    """Updates."""
    limit: int | None = None
    """At most."""
    layers: list[int] = []  # noqa: RUF012 - pydantic copies defaults
    """Sizes."""
    model: Model = Model()
    """The model."""

    @model_validator(mode="after")
    def _enough(self) -> "Settings":
        if self.limit is not None and self.limit < 2:
            raise ValueError(f"limit {self.limit} is less than 2; take more")
        return self


def told(data: dict[str, object], cls: type[Config] = Settings, path: str = "") -> str:
    """What the user reads about `data`."""
    with pytest.raises(UserError) as caught:
        parse(cls, data, path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_integer_is_accepted_where_a_float_is_meant() -> None:
    settings = parse(Settings, {"name": "x", "model": {"dropout": 1}})
    assert settings.model.dropout == 1.0
    assert isinstance(settings.model.dropout, float)


@pytest.mark.parametrize(
    "data, message",
    [
        ({"model": {"n_layer": "abc"}}, "model.n_layer: expected a valid integer, got 'abc'"),
        ({"model": {"n_layer": 1.0}}, "model.n_layer: expected a valid integer, got 1.0"),
        ({"model": {"n_layer": True}}, "model.n_layer: expected a valid integer, got true"),
        ({"model": {"n_layer": None}}, "model.n_layer: expected a valid integer, got null"),
        ({"model": {"n_layer": 0}}, "model.n_layer: expected greater than or equal to 1, got 0"),
        ({"model": {"norm": "batch"}}, "model.norm: expected 'layernorm' or 'rmsnorm', got 'batch'"),
        ({"model": {"dropout": float("nan")}}, "model.dropout: expected a finite number, got nan"),
        ({"steps": "soon"}, "steps: expected a valid integer or 'auto', got 'soon'"),
        ({"layers": [1, "b"]}, "layers.1: expected a valid integer, got 'b'"),
        ({"name": 7}, "name: expected a valid string, got 7"),
        ({"limit": 1}, "limit 1 is less than 2; take more"),
    ],
)
def test_a_wrong_value_is_told_with_path_type_and_value(data: dict[str, object], message: str) -> None:
    assert told({"name": "x", **data}) == message


def test_a_missing_setting_is_told() -> None:
    assert told({}) == "name: this setting is required"


def test_a_long_value_is_cut() -> None:
    assert told({"name": "x", "limit": "9" * 1000}) == f"limit: expected a valid integer, got '{'9' * 78}…"


@pytest.mark.parametrize(
    "data, wrong, right",
    [
        ({"nmae": 1}, "nmae", "name"),
        ({"model": {"n_layers": 1}}, "model.n_layers", "model.n_layer"),
        ({"n_layer": 1}, "n_layer", "model.n_layer"),
        ({"droput": 1}, "droput", "model.dropout"),
        ({"modle": {"n_layer": 1}}, "modle", "model"),
    ],
)
def test_an_unknown_key_names_the_nearest(data: dict[str, object], wrong: str, right: str) -> None:
    expected = f"{wrong}: there is no such setting; did you mean {right}? see --help for all of them"
    assert told({"name": "x", **data}) == expected


def test_an_unknown_key_is_told_before_what_follows_from_it() -> None:
    assert told({"nmae": "x"}).startswith("nmae: there is no such setting; did you mean name?")


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    assert told({"name": "x", "zzz": 1}) == "zzz: there is no such setting; see --help for all of them"


def test_messages_start_where_the_part_stands() -> None:
    assert told({"n_layr": 1}, Model, "model").startswith("model.n_layr: there is no such setting; did you mean m")


def test_a_config_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Model().n_layer = 5


def test_variants_are_the_public_modules(optimizers: str) -> None:
    assert variant_names(optimizers) == ("adam", "sgd")
    assert variant_class(optimizers, "adam").model_fields["lr"].default == 0.001


@pytest.mark.parametrize("module, count", [("none", 0), ("two", 2)])
def test_a_module_defines_one_variant(optimizers: str, module: str, count: int) -> None:
    with pytest.raises(TypeError, match=f"exactly one Variant, it defines {count}"):
        variant_class("broken_for_test_config", module)


@pytest.fixture(scope="module")
def run(optimizers: str) -> type[Config]:
    """Settings with a single choice and one of several at once."""

    class Run(Config):
        optimizer: Annotated[Variant, Choice(optimizers, "optimizer")]
        several: dict[str, Annotated[Variant, Choice(optimizers, "several.*")]] = {}  # noqa: RUF012

    return Run


def test_a_choice_is_parsed_dumped_and_parsed_again(run: type[Config]) -> None:
    data = {"optimizer": {"name": "sgd", "lr": 1, "momentum": 0.5}, "several": {"adam": {"name": "adam"}}}
    settings = parse(run, data)
    dumped = settings.model_dump()
    assert dumped["optimizer"] == {"name": "sgd", "lr": 1.0, "momentum": 0.5}
    assert dumped["several"] == {"adam": {"name": "adam", "lr": 0.001, "steps": 10}}
    assert parse(run, dumped) == settings


def test_a_choice_takes_a_variant_that_was_made_in_python(run: type[Config], optimizers: str) -> None:
    adam = variant_class(optimizers, "adam")(name="adam")
    assert parse(run, {"optimizer": adam}).optimizer is adam


@pytest.mark.parametrize(
    "data, message",
    [
        ({"name": "adm"}, "optimizer: there is no 'adm'; did you mean adam? there are adam, sgd"),
        ({"name": "os"}, "optimizer: there is no 'os'; there are adam, sgd"),
        ({"name": "_shared"}, "optimizer: there is no '_shared'; there are adam, sgd"),
        ({"name": "adam.sub"}, "optimizer: there is no 'adam.sub'; there are adam, sgd"),
        ("adam", "optimizer: expected one of adam, sgd and its settings, got 'adam'"),
        ({"lr": 1}, "optimizer: expected one of adam, sgd and its settings, got {'lr': 1}"),
        (None, "optimizer: expected one of adam, sgd and its settings, got null"),
        ({"name": "adam", "lr": "x"}, "optimizer.lr: expected a valid number, got 'x'"),
        (
            {"name": "adam", "momentum": 1},
            "optimizer.momentum: optimizer=adam has no such setting; it belongs to optimizer=sgd",
        ),
    ],
)
def test_a_wrong_choice_is_told(run: type[Config], data: object, message: str) -> None:
    assert told({"optimizer": data}, run) == message


def test_one_of_several_choices_is_told_under_its_own_name(run: type[Config]) -> None:
    data = {"optimizer": {"name": "adam"}, "several": {"sgd": {"name": "sgd", "momntum": 1}}}
    assert told(data, run).startswith("several.sgd.momntum: there is no such setting; did you mean several.sgd.m")


def test_settings_are_listed_with_those_of_configs_and_variants_inside(run: type[Config]) -> None:
    assert list(settings_of(Settings)) == [
        *("name", "steps", "limit", "layers"),
        *("model", "model.n_layer", "model.dropout", "model.norm"),
    ]
    listed = list(settings_of(run))
    assert {"optimizer.lr", "optimizer.momentum", "several.adam.steps", "several.sgd.lr"} <= set(listed)
    assert "several.lr" not in listed


@pytest.mark.parametrize(
    "wrong, right, expected",
    [
        ("lr", ["model.l", "optimizer.lr"], "optimizer.lr"),
        ("schedule.flor", ["floor", "schedule.floor", "optimizer.floor"], "schedule.floor"),
        ("optimizer.rl", ["optimizer.name", "optimizer.lr", "lr"], "optimizer.lr"),
        ("optimizer.momentum", ["optimizer.name", "optimizer.lr"], None),
        ("optimizer.wramup", ["optimizer.name", "schedule.warmup"], "schedule.warmup"),
    ],
)
def test_nearest_goes_by_the_last_part_then_by_the_whole_path(
    wrong: str, right: list[str], expected: str | None
) -> None:
    assert nearest(wrong, right) == (f"did you mean {expected}? " if expected else "")


@pytest.mark.parametrize("error", [UserError, RunError])
def test_what_is_told_is_one_line_that_a_terminal_does_not_obey(error: type[Exception]) -> None:
    assert str(error("two\nlines\r\n, a\ttab, \x1b[31m, \x00, \u2028, 私 é")) == (
        "two lines  , a tab, \\x1b[31m, \\x00,  , 私 é"
    )
    assert str(error("nothing to change")) == "nothing to change"


def test_a_long_line_loses_its_middle() -> None:
    assert one_line("x" * LONGEST) == "x" * LONGEST
    assert one_line(f"run: {'x' * 9999}; name another") == f"run: {'x' * 994}…{'x' * 986}; name another"
    assert len(one_line("\0" * LONGEST)) == LONGEST, "what is in words is longer"


def test_a_number_that_python_does_not_write_is_shown() -> None:
    assert shown(1 << 20_000) == "a number of 20001 bits"
    assert shown(10**30) == "1" + "0" * 30
