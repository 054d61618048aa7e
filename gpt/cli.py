"""The command line of the scripts: hydra composes, the typed settings check, mistakes are told in one line.

Nothing is written to disk here: hydra's own folders and logs belong to `hydra.main`, which is not used.
"""

import errno
import io
import os
import re
import select
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from rich.console import Console

from gpt.config import ROOT, Config, RunError, UserError, nearest, parse
from gpt.help import options_of, page
from gpt.literal import Texts, is_nothing, is_text

CONFIGS = ROOT / "configs"

S = TypeVar("S", bound=Config)
Groups = Mapping[str, Sequence[str]]

PATH_ERRORS = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EROFS, errno.ELOOP,
}  # fmt: skip
"""What goes wrong with a path that the user named."""


def main(
    config_name: str,
    settings: type[S],
    task: Callable[[S, Path | None], None],
    config_dir: Path = CONFIGS,
    script: str | None = None,
) -> None:
    """Run a script: compose and check its settings, then do `task` with them and the folder asked for.

    Returns when all went well; else exits with 2 for the user's mistake, 130 for Ctrl-C, 1 for anything else.

    Args:
        config_name: the yaml in `config_dir` that the script starts from.
        settings: what the composed configuration must be.
        task: receives the settings, and `hydra.run.dir` where the user gave one.
        config_dir: a folder per choice, a file per option.
        script: as it is typed, where that is not `config_name`.py.
    """
    argv = [_as_typed(argument) for argument in sys.argv[1:]]
    debug = any(argument.lstrip("+").lower() == "debug=true" for argument in argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or a file in an old encoding must not end a run over a character that it lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        flags = _flags(argv)
        if flags & {"-h", "--help"}:
            _print_page(script or f"{config_name}.py", config_name, settings, config_dir)
        else:
            chosen, run_dir = compose(config_name, argv, settings, config_dir)
            debug = debug or getattr(chosen, "debug", False)
            if "--cfg" in flags:
                _print_settings(chosen)
            else:
                task(chosen, run_dir)
        if sys.stdout:  # closed by `>&-` it is None
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        sys.exit(_told(error, debug))


def compose(
    config_name: str, argv: Sequence[str], settings: type[S], config_dir: Path = CONFIGS
) -> tuple[S, Path | None]:
    """The checked settings that the arguments `argv` describe, and `hydra.run.dir` where they name one.

    Raises:
        UserError: an argument that cannot be read, an unknown choice or setting, a wrong type.
    """
    texts = Texts()
    groups = _groups(config_dir)
    overrides = [_override(a, texts, groups) for a in argv if not a.startswith("-")]
    try:
        config = _composed(config_name, overrides, config_dir)
        data = texts.restored(OmegaConf.to_container(_own(config), resolve=True, throw_on_missing=True))
        run_dir = texts.restored(config.hydra.run.dir) if _names_run_dir(argv) else None
    except Exception as error:
        raise UserError(texts.restored(_reason(error, groups))) from error
    if run_dir == "":
        raise UserError("hydra.run.dir: expected a folder, got nothing")
    return parse(settings, data), Path(run_dir) if run_dir is not None else None


def _as_typed(argument: str) -> str:
    """An argument as UTF-8, whatever the locale that Python read it in."""
    return os.fsencode(argument).decode("utf-8", errors="surrogateescape")


def _override(argument: str, texts: Texts, groups: Groups) -> str:
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
        return f"++{key}={texts.held(key, value)}"
    if re.split(r"[./]", key)[0] == "hydra":
        return _readable(argument, key)
    if key.partition("@")[0] in groups:
        if value == "null":
            raise UserError(_no_choice(key, value, groups[key.partition("@")[0]]))
        return _readable(f"{key}={value}", key)
    if (group := key.removesuffix(".name").replace(".", "/")) in groups:
        raise UserError(f"{argument}: a choice is written {group}={value}")
    for group in groups:
        if group.endswith(f"/{key}"):
            raise UserError(f"{argument}: a choice is written {group}={value}")
    if "/" in key:
        listed = ", ".join(groups) or "none"
        raise UserError(f"{key}: there is no such choice; {nearest(key, groups)}there are {listed}")
    return _readable(f"++{key}={value}", key)


def _readable(override: str, key: str) -> str:
    """`override`, which hydra's grammar must be able to read and which must mean one value, not a sweep."""
    typed = override.removeprefix("++")
    try:
        parsed = OverridesParser.create().parse_override(override)
    except HydraException as error:
        raise UserError(f"{typed}: cannot be read; quote the value twice, as in '{key}=\"…\"'") from error
    if parsed.is_sweep_override():
        raise UserError(f"{typed}: takes one value; a list is written '{key}=[a,b]'")
    return override


def _groups(config_dir: Path) -> dict[str, list[str]]:
    """Each choice, as it is typed, and the names of what can be chosen: the folders and the files in them."""
    if not config_dir.is_dir():
        raise UserError(f"{config_dir}: no such folder; install from a checkout, with pip install -e .")
    groups: dict[str, list[str]] = {}
    for file in sorted(config_dir.glob("*/**/*.yaml"), key=lambda file: (file.parent, file.stem)):
        groups.setdefault(file.parent.relative_to(config_dir).as_posix(), []).append(file.stem)
    return groups


def _composed(config_name: str, overrides: list[str], config_dir: Path) -> DictConfig:
    with initialize_config_dir(str(config_dir.absolute()), version_base="1.3"):
        return hydra_compose(config_name, overrides, return_hydra_config=True)


def _own(config: DictConfig) -> DictConfig:
    """A composition without hydra's own part."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def _names_run_dir(argv: Sequence[str]) -> bool:
    return any(argument.lstrip("+").startswith("hydra.run.dir=") for argument in argv)


def _reason(error: Exception, groups: Groups) -> str:
    """What hydra or OmegaConf complains about, as one line."""
    if isinstance(error, MissingConfigException) and "/" in (error.missing_cfg_file or ""):
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        return _no_choice(group, name, error.options or groups.get(group, []))
    where = getattr(error, "full_key", None) or ""
    if isinstance(error, MissingMandatoryValue):
        return f"{where}: this setting is required; give it, as in {where}=…"
    lines = [where, *(str(e).partition("\n")[0] for e in (error, error.__cause__) if e)]
    return f"{': '.join(line.rstrip('.') for line in lines if line)}; see --help for what there is"


def _no_choice(group: str, name: str, names: Sequence[str]) -> str:
    return f"{group}: there is no {name!r}; {nearest(name, names)}there are {', '.join(names)}"


def _flags(argv: Sequence[str]) -> set[str]:
    flags = {argument for argument in argv if argument.startswith("-")}
    for flag in sorted(flags - {"-h", "--help", "--cfg"}):
        raise UserError(f"{flag}: there is no such flag; there are --help and --cfg, settings are key=value")
    return flags


def _print_settings(settings: Config) -> None:
    print(yaml.safe_dump(settings.model_dump(), sort_keys=False, allow_unicode=True), end="")


def _print_page(script: str, config_name: str, settings: type[Config], config_dir: Path) -> None:
    composed = _composed(config_name, [], config_dir)
    options = options_of(composed, _groups(config_dir), config_dir)
    defaults: Any = OmegaConf.to_container(_own(composed), resolve=True)
    Console(highlight=False).print(page(script, settings, defaults, options))


def _told(error: BaseException, debug: bool) -> int:
    """Tell what ended the script on stderr, as one line; the exit code."""
    if isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    if isinstance(error, BrokenPipeError) and hasattr(select, "poll") and _reader_is_gone():
        return 1
    if debug:
        traceback.print_exception(error)
    if isinstance(error, UserError | RunError):
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    if isinstance(error, OSError) and error.errno in PATH_ERRORS and error.filename:
        print(f"error: {error.filename}: {error.strerror}; mend that, or name another path", file=sys.stderr)
        return 2
    hint = "" if debug else "; run again with debug=true for the traceback"
    print(f"error: unexpected {type(error).__name__}: {_one_line(error)}{hint}", file=sys.stderr)
    return 1


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split("\n"))


def _reader_is_gone() -> bool:
    """Whether stdout's reader has closed it, as `| head` does; if so, nothing is sent there again."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    gone = bool(poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return gone
