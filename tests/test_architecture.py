"""The house: imports point one way, and each variant is one file and one yaml."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpt.cli import compose
from gpt.config import ROOT, Config, Variant, configs_in
from gpt.generation.settings import SampleSettings
from gpt.insight.studying import StudySettings
from gpt.training.settings import TrainSettings

CONFIGS = ROOT / "configs"
LEVELS = [
    {"config"},
    {"launch"},
    {"files", "literal", "signals"},
    {"model", "data", "device", "contention", "peak", "processes"},
    {"generation"},
    {"checkpoint", "weights"},
    {"interop"},
    {"runs", "run_notes", "run_folder", "run"},
    {"training"},
    {"export"},
    {"insight"},
    {"cli"},
    {"__main__"},
]
"""A module imports from its own level and the levels above it in this list."""


def variants(cls: type[Config], prefix: str = "") -> Iterator[tuple[str, type[Variant]]]:
    """Group, as a folder of configs/, and class of every variant of every choice in `cls`."""
    for key, field in cls.model_fields.items():
        for path, config in configs_in(field, prefix + key):
            if issubclass(config, Variant):
                yield path.removesuffix(f".{module_name(config)}").replace(".", "/"), config
            yield from variants(config, f"{path}.")


def module_name(config: type[Config]) -> str:
    return config.__module__.rpartition(".")[2]


def modules() -> dict[str, Path]:
    """Dotted name -> file of every module of the package but the root, which re-exports."""
    files = sorted((ROOT / "gpt").rglob("*.py"))
    names = {f: ".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for f in files}
    return {name: file for file, name in names.items() if name != "gpt"}


def imports(name: str, file: Path) -> set[str]:
    """The modules of the package that a module imports."""
    known, found = set(modules()), set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative imports hide their direction"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return {module for module in found if module in known and module != name}


def level(module: str) -> int:
    return next(i for i, rooms in enumerate(LEVELS) if module.split(".")[1] in rooms)


@pytest.mark.parametrize("name", modules())
def test_no_arrow_runs_upward(name):
    for imported in imports(name, modules()[name]):
        assert level(imported) <= level(name), f"{name} imports {imported}"
        assert {name.split(".")[1], imported.split(".")[1]} != {"model", "data"}, f"{name} imports {imported}"


def test_no_circle():
    waiting = {name: imports(name, file) for name, file in modules().items()}
    while ready := {name for name, needed in waiting.items() if not needed & waiting.keys()}:
        waiting = {name: needed for name, needed in waiting.items() if name not in ready}
    assert not waiting, f"these import one another in a circle, or stand on one: {sorted(waiting)}"


@pytest.mark.parametrize("name", modules())
def test_only_the_command_line_imports_hydra(name):
    text = modules()[name].read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        found = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "") or ""]
        if any(module.split(".")[0] == "hydra" for module in found):
            assert name == "gpt.__main__" or name.startswith("gpt.cli")


@pytest.mark.parametrize("script", ["train.py", "sample.py"])
def test_scripts_are_short(script):
    assert len((ROOT / script).read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("group, config", list(variants(TrainSettings)), ids=lambda v: getattr(v, "__name__", v))
def test_each_variant_has_a_yaml_with_its_defaults(group, config):
    name = module_name(config)
    content = yaml.safe_load((CONFIGS / group / f"{name}.yaml").read_text(encoding="utf-8"))
    if group == "logger":  # several at once, each under its own name
        content = content[name]
    required = {key: "???" for key, field in config.model_fields.items() if field.is_required()}
    values = config(name=name, **dict.fromkeys(required, "/somewhere")).model_dump()
    assert content == {**values, **required}


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*/**/*.yaml")), ids=lambda f: str(f.relative_to(CONFIGS)))
def test_each_yaml_composes(file):
    group = file.parent.relative_to(CONFIGS).as_posix()
    value = f"[{file.stem}]" if group == "logger" else file.stem
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    required = [f"{group.replace('/', '.')}.{key}=/somewhere" for key, given in content.items() if given == "???"]
    name, cls = ("study", StudySettings) if group == "study" else ("train", TrainSettings)
    settings, run_dir = compose(name, [f"{group}={value}", *required], cls)
    assert isinstance(settings, cls)
    assert run_dir is None


@pytest.mark.parametrize("name, cls", [("train", TrainSettings), ("sample", SampleSettings)])
def test_the_yaml_lists_every_setting_with_its_default(name, cls):
    content = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
    plain = {k: f.default for k, f in cls.model_fields.items() if k not in ("model", "logger") and not f.is_required()}
    assert {k: v for k, v in content.items() if k not in ("defaults", "hydra")} == plain


def test_the_default_model_is_the_class_default():
    settings, _ = compose("train", [], TrainSettings)
    assert settings.model == type(settings.model)(n_kv_head=1, output_init="zeros")
