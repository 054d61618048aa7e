"""The command line of the scripts: hydra composes, the typed settings check, mistakes are told in one line."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hydra.compose import compose as hydra_compose
from omegaconf import OmegaConf
from rich.console import Console

from gpt import signals
from gpt.cli.composition import CONFIGS, as_yaml, compose, groups_in, hydra_at, key_of, own
from gpt.cli.ending import plain_words, tell
from gpt.cli.help import Option, options_of, page
from gpt.cli.script import Outcome, Script
from gpt.cli.sweep import show_jobs, sweep
from gpt.config import Config, UserError
from gpt.launch import heard, is_launched

__all__ = ["compose", "described", "main"]

S = TypeVar("S", bound=Config)

HELP, SWEEP, SHOW = {"-h", "--help"}, {"-m", "--multirun"}, {"--cfg"}


def main(
    config_name: str,
    settings: type[S],
    task: Callable[[S, Path | None], Outcome | None],
    config_dir: Path = CONFIGS,
    script: str | None = None,
    claim: Callable[[Path | None, str], Path] | None = None,
) -> None:
    """Run a script: compose and check its settings, then do `task` with them; with -m for each job of a sweep.

    Returns when all went well; else exits with 2 for the user's mistake, 128 and its number for a signal (Ctrl-C: 130),
    1 for anything else, and for a sweep of which a job failed.

    Args:
        config_name: the yaml in `config_dir` that the script starts from.
        settings: what the composed configuration must be.
        task: receives the settings and a folder: `hydra.run.dir` where the user gave one, in a sweep the job's own.
            What it returns becomes columns of a sweep's table.
        config_dir: a folder per choice, a file per option.
        script: as it is typed, where that is not `config_name`.py.
        claim: makes a sweep's folder out of `hydra.sweep.dir`, or None, and the run's name; without it a sweep leaves
            nothing behind, and its jobs get no folder.
    """
    argv = [_as_typed(argument) for argument in sys.argv[1:]]
    debug = any(argument.lstrip("+").lower() == "debug=true" for argument in argv)
    code = 0
    try:
        with plain_words(), heard(), signals.raised():
            code = _run(Script(config_name, settings, task, config_dir, script or f"{config_name}.py", claim), argv)
            if sys.stdout:  # closed by `>&-` it is None
                sys.stdout.flush()
    except (Exception, KeyboardInterrupt, signals.Interrupted) as error:
        code = tell(error, debug).code
    if code:
        sys.exit(code)


def _run(script: Script[S], argv: Sequence[str]) -> int:
    """Do what the flags ask for; the exit code."""
    flags = {argument for argument in argv if argument.startswith("-")}
    for flag in sorted(flags - HELP - SWEEP - SHOW):
        raise UserError(f"{flag}: there is no such flag; there are --help, --cfg and -m, settings are key=value")
    if flags & HELP:
        _print_page(script)
        return 0
    if flags & SWEEP and is_launched():
        raise UserError("-m: torchrun starts the processes of one run, and a sweep has many; start it without torchrun")
    if flags & SWEEP:
        return show_jobs(script, argv) if flags & SHOW else sweep(script, argv)
    if any(key_of(argument) == "hydra.sweep.dir" for argument in argv):
        raise UserError("hydra.sweep.dir: only a sweep has such a folder; add -m, or name the run's with hydra.run.dir")
    chosen, run_dir = compose(script.config_name, argv, script.settings, script.config_dir)
    if flags & SHOW:
        print(as_yaml(chosen), end="")
        return 0
    try:
        with signals.raised():
            script.task(chosen, run_dir)
    except Exception as error:
        return tell(error, script.debug(chosen)).code
    return 0


def _as_typed(argument: str) -> str:
    """An argument as UTF-8, whatever the locale that Python read it in."""
    return os.fsencode(argument).decode("utf-8", errors="surrogateescape")


def _print_page(script: Script[S]) -> None:
    Console(highlight=False).print(
        page(script.typed_as, script.settings, *described(script.config_name, script.config_dir))
    )


def described(config_name: str, config_dir: Path = CONFIGS) -> tuple[dict[str, Any], dict[str, Option]]:
    """What is set in a call without arguments, and what can be chosen, by group."""
    with hydra_at(config_dir, config_name):
        composed = hydra_compose(config_name, return_hydra_config=True)
    defaults: Any = OmegaConf.to_container(own(composed), resolve=True)
    return defaults, options_of(composed, groups_in(config_dir), config_dir)
