"""From arguments to checked settings: hydra composes what was typed and the yaml files, the typed settings check it.

Nothing is written to disk: hydra's own folders and logs belong to `hydra.main`, which is not used.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import yaml
from hydra import initialize_config_dir
from hydra.compose import compose as hydra_compose
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf

from gpt.config import ROOT, Config, UserError, leaves, nearest, parse
from gpt.literal import Texts, is_nothing, is_text

CONFIGS = ROOT / "configs"

S = TypeVar("S", bound=Config)
Groups = Mapping[str, Sequence[str]]


def compose(
    config_name: str, argv: Sequence[str], settings: type[S], config_dir: Path = CONFIGS
) -> tuple[S, Path | None]:
    """The checked settings that the arguments `argv` describe, and `hydra.run.dir` where they name one.

    Raises:
        UserError: an argument that cannot be read, an unknown choice or setting, a wrong type.
    """
    line = Line(argv, groups_in(config_dir))
    try:
        with hydra_at(config_dir, config_name):
            config = hydra_compose(config_name, list(line.overrides), return_hydra_config=True)
        data = line.texts.restored(OmegaConf.to_container(own(config), resolve=True, throw_on_missing=True))
        typed = line.typed(settings, config_dir)
        run_dir = line.texts.restored(config.hydra.run.dir) if "hydra.run.dir" in typed else None
    except Exception as error:
        raise UserError(line.reason(error)) from error
    if run_dir == "":
        raise UserError("hydra.run.dir: expected a folder, got nothing")
    folder = Path(run_dir) if run_dir is not None else None
    return parse(settings, settings.completed(data, typed, folder)), folder


def as_yaml(settings: Config) -> str:
    """All settings, as `--cfg` prints them."""
    return str(yaml.safe_dump(settings.model_dump(), sort_keys=False, allow_unicode=True))


@contextmanager
def hydra_at(config_dir: Path, name: str) -> Iterator[None]:
    """Within, hydra composes from the yaml files of `config_dir`; `name` is what it calls the program."""
    with initialize_config_dir(str(config_dir.absolute()), job_name=name, version_base="1.3"):
        yield


def groups_in(config_dir: Path) -> dict[str, list[str]]:
    """Each choice, as it is typed, and the names of what can be chosen: the folders and the files in them.

    Raises:
        UserError: there is no such folder.
    """
    if not config_dir.is_dir():
        raise UserError(f"{config_dir}: no such folder; install from a checkout, with pip install -e .")
    groups: dict[str, list[str]] = {}
    for file in sorted(config_dir.glob("*/**/*.yaml"), key=lambda file: (file.parent, file.stem)):
        groups.setdefault(file.parent.relative_to(config_dir).as_posix(), []).append(file.stem)
    return groups


def own(config: DictConfig) -> DictConfig:
    """A composition without hydra's own part."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def parsed(argument: str) -> Override:
    """`argument` as hydra's grammar reads it.

    Raises:
        UserError: it cannot.
    """
    try:
        return OverridesParser.create().parse_override(argument)
    except HydraException as error:
        typed = argument.removeprefix("++")
        key = key_of(argument)
        raise UserError(f"{typed}: cannot be read; quote the value twice, as in '{key}=\"…\"'") from error


def key_of(argument: str) -> str:
    """What an argument sets, deletes or chooses: all before the first =, less the sign before it."""
    return argument.partition("=")[0].lstrip("+~")


def is_hydras(key: str) -> bool:
    """Whether a key sets how hydra itself works, and nothing of the script's."""
    return re.split(r"[./]", key)[0] == "hydra"


class Line:
    """A command line as it was read.

    Args:
        argv: the arguments; flags are passed over.
        groups: each choice, and what can be chosen.

    Raises:
        UserError: an argument that cannot be read, or that names no choice.
    """

    def __init__(self, argv: Sequence[str], groups: Groups) -> None:
        self.groups = groups
        self.texts = Texts()
        self.overrides = [self._override(argument) for argument in argv if not argument.startswith("-")]
        """What hydra shall see, placeholders in place of the texts."""

    def typed(self, settings: type[Config], config_dir: Path) -> frozenset[str]:
        """The dotted paths of what is set; of a recipe, which is no setting itself, those of what it sets."""
        paths: set[str] = set()
        for override in self.overrides:
            key, _, name = override.lstrip("+~").partition("=")
            group = key.partition("@")[0]
            if group in self.groups and group.partition("/")[0] not in settings.model_fields:
                paths |= _set_by(config_dir / group / f"{name}.yaml")
            else:
                paths.add(group.replace("/", "."))
        return frozenset(paths)

    def reason(self, error: Exception) -> str:
        """What hydra or OmegaConf complains about, as one line."""
        return str(self.texts.restored(_reason(error, self.groups)))

    def _override(self, argument: str) -> str:
        """`argument` as hydra shall see it.

        A value is passed with ++: so a misspelt key reaches the typed settings, which know the nearest right one.
        """
        if argument.startswith("~"):
            return argument
        prefixed, equals, value = argument.partition("=")
        key = prefixed.lstrip("+")
        if not (key and equals):
            raise UserError(f"{argument}: a setting is written key=value, a text with spaces key='a text'; see --help")
        if is_text(key) and not is_nothing(key, value):
            return f"++{key}={self.texts.held(key, value)}"
        if is_hydras(key):
            return _of_one_value(argument)
        if key.partition("@")[0] in self.groups:
            return self._choice(key, value)
        self._refuse_misplaced(key, argument)
        return _of_one_value(f"++{key}={value}")

    def _choice(self, key: str, value: str) -> str:
        """`key=value` where `value` is a name, or a list of some."""
        override = _of_one_value(f"{key}={value}")
        chosen = parsed(override).value()
        for name in chosen if isinstance(chosen, list) else [chosen]:
            if not isinstance(name, str):
                wrong = "null" if name is None else str(name)
                raise UserError(_no_choice(key, wrong, self.groups[key.partition("@")[0]]))
        return override

    def _refuse_misplaced(self, key: str, argument: str) -> None:
        """A choice is not written as a setting is."""
        value = argument.partition("=")[2]
        named = key.removesuffix(".name").replace(".", "/")
        for group in self.groups:
            if group == named or group.endswith(f"/{key}"):
                raise UserError(f"{argument}: a choice is written {group}={value}")
        if "/" in key:
            listed = ", ".join(self.groups) or "none"
            raise UserError(f"{key}: there is no such choice; {nearest(key, self.groups)}there are {listed}")


def _set_by(recipe: Path) -> set[str]:
    """The dotted paths of what a recipe sets, by its values and by its list of defaults."""
    content = yaml.safe_load(recipe.read_text(encoding="utf-8")) if recipe.is_file() else {}
    chosen = [key for entry in content.pop("defaults", []) if isinstance(entry, dict) for key in entry]
    return {*leaves(content), *(key.removeprefix("override ").strip("/ ").replace("/", ".") for key in chosen)}


def _of_one_value(override: str) -> str:
    """`override`, which hydra's grammar must be able to read and which must mean one value, not a sweep."""
    if parsed(override).is_sweep_override():
        typed, key = override.removeprefix("++"), key_of(override)
        raise UserError(f"{typed}: takes one value; add -m to run each, or write a list as '{key}=[a,b]'")
    return override


def _reason(error: Exception, groups: Groups) -> str:
    if isinstance(error, MissingConfigException) and "/" in (error.missing_cfg_file or ""):
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        return _no_choice(group, name, error.options or groups.get(group, []))
    where = getattr(error, "full_key", None) or ""
    if isinstance(error, MissingMandatoryValue):
        return f"{where}: this setting is required; give it, as in {where}=…"
    elsewhere = re.match(r"Could not override '([^'@]+)'", str(error))
    if elsewhere and elsewhere[1] in groups:
        return f"{elsewhere[1]}: a choice of other commands, not of this one; see --help for what there is"
    lines = [where, *(str(e).partition("\n")[0] for e in (error, error.__cause__) if e)]
    return f"{': '.join(line.rstrip('.') for line in lines if line)}; see --help for what there is"


def _no_choice(group: str, name: str, names: Sequence[str]) -> str:
    more = "; others come with pip install hydra-joblib-launcher or hydra-submitit-launcher"
    listed = f"there are {', '.join(names)}{more if group == 'hydra/launcher' else ''}"
    return f"{group}: there is no {name!r}; {nearest(name, names)}{listed}"
