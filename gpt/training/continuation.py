"""Settings that go on from something stored: a run's own (`resume`), or another's model and tokenizer (`init`).

A run goes on with the configuration that it began with. What is typed beside `resume` may repeat it, or change what
does not make it another run.
"""

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from gpt import checkpoint
from gpt.checkpoint import Checkpoint
from gpt.config import UserError, leaves, parse, shown, variant_class
from gpt.files import is_held, nearby
from gpt.interop.foreign import Foreign
from gpt.interop.opening import opened
from gpt.run import choose_checkpoint, latest
from gpt.run_folder import read_settings
from gpt.runs import CONFIG, run_folders
from gpt.weights import model_config

MAY_DIFFER = ("steps", "budget", "eval_every", "save_every", "keep", "logger", "device", "parallel", "accumulate")
"""What may change when a run is resumed: its length, its reporting, and where and in how many parts it is computed."""

ASIDE = ("resume", "debug")
"""What belongs to a command, and not to the run."""


def completed(cls: type[Any], data: dict[str, Any], typed: Collection[str], run_dir: Path | None) -> dict[str, Any]:
    """`data` with what `resume` and `init` take from a run's folder.

    Raises:
        UserError: no such run, or what was typed contradicts it.
    """
    resume, init = data.get("resume"), data.get("init")
    for setting in ("resume", "init"):
        if data.get(setting) == "":
            raise UserError(f"{setting}: expected the folder of a run, got nothing; name one, or leave it out")
    if resume and resume != "auto":
        for other in {"init", "hydra.run.dir"} & set(typed):
            raise UserError(
                f"{other}: resume={resume} goes on in that run's own folder, with its weights; leave it out"
            )
        return resumed(cls, Path(resume), data, typed)
    if resume and init == "latest":
        raise UserError("init: with resume=auto, latest would soon be the run that is begun; name the run")
    if init:
        data = initialised(init, data, typed)
    if resume:
        found = newest_unfinished(parse(cls, data), [run_dir] if run_dir else run_folders())
        return resumed(cls, found, data, typed) if found else {**data, "resume": None}
    return data


def resumed(cls: type[Any], folder: Path, data: dict[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """The stored settings of the run in `folder`, and of those typed the ones that may differ."""
    stored = _stored(cls, folder).model_dump()
    merged = overlaid(stored, data, typed)
    if "steps" in typed and "budget" not in typed:
        merged["budget"] = None
    if merged["model"]["vocab_size"] is None:
        merged["model"]["vocab_size"] = stored["model"]["vocab_size"]
    merged |= {"resume": None, "debug": data.get("debug", False)}
    before, now = leaves(stored), leaves(parse(cls, merged).model_dump())
    by_choice = sorted(before.keys() | now.keys(), key=lambda path: (not path.endswith(".name"), path))
    for path in by_choice:  # another variant has other settings, and is told of first
        if before.get(path) != now.get(path) and path.split(".")[0] not in (*MAY_DIFFER, *ASIDE):
            raise UserError(
                f"resume: {path} is {shown(before.get(path))} in {nearby(folder)}, and {shown(now.get(path))} here; a "
                f"resumed run keeps all but {', '.join(MAY_DIFFER)}: leave it out, or start a new run with init="
            )
    return {**merged, "resume": str(folder.absolute())}


def initialised(init: str, data: dict[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """`data` with the model and the tokenizer that `init` names; of the model what is typed may differ."""
    with told_as("init"):
        foreign = opened(init)
        name, stored = _of_others(foreign) if foreign else _of_run(latest() if init == "latest" else Path(init))
    merged = {**data, **{part: overlaid(stored, data, typed)[part] for part in ("model", "tokenizer")}}
    for key, value in merged["tokenizer"].items():
        if key != "unknown" and value != stored["tokenizer"].get(key):
            raise UserError(
                f"init: tokenizer.{key} is {shown(stored['tokenizer'].get(key))} in {init}, and its weights know no "
                "other tokenizer; leave it out"
            )
    return {**merged, "init": name}


def _of_run(folder: Path) -> tuple[str, dict[str, Any]]:
    """The name of a run from anywhere, and its settings."""
    point, _ = choose_checkpoint(folder)
    stored = checkpoint.read_file(point.folder, checkpoint.CONFIG)
    model_config(point.folder / checkpoint.CONFIG, stored)
    if not all(isinstance(stored.get(part), dict) for part in ("model", "tokenizer")):
        raise UserError(f"run: {point.folder / checkpoint.CONFIG} describes no model and tokenizer; name another run")
    return str(folder.absolute()), stored


def _of_others(foreign: Foreign) -> tuple[str, dict[str, Any]]:
    """The name of another program's model from anywhere, and settings that describe it.

    Its table has a row for each token of its tokenizer at least. Of the tokenizer's settings those that must be given
    are where it is from: it is read from there, and not built as they say.
    """
    tokenizer = foreign.tokenizer()
    rows = max(foreign.config.vocab_size or 0, tokenizer.vocab_size)
    fields = variant_class("gpt.data.tokenizer", tokenizer.name).model_fields
    required = {key: str(foreign.folder.absolute()) for key, field in fields.items() if field.is_required()}
    model = {**foreign.config.model_dump(), "vocab_size": rows}
    return foreign.name, {"model": model, "tokenizer": {"name": tokenizer.name, **required}}


def newest_unfinished(wanted: Any, folders: Collection[Path]) -> Path | None:
    """The first of the runs' folders whose run has the settings `wanted` and is not at its end; None: there is none.

    A run that is damaged is passed over, one that another process trains is left to it. Of one that is unfinished and
    newer than all others, but of other settings, a person is told.
    """
    for number, folder in enumerate(folders):
        with suppress(UserError, OSError):
            stored = _stored(type(wanted), folder)
            same = _same_run(stored.model_dump(), wanted.model_dump())
            if same and _is_unfinished(folder, _found(folder), stored, wanted):
                return folder
            if number == 0 and not same and _is_unfinished(folder, checkpoint.find(folder / "checkpoints"), stored):
                _tell_of_another(folder)
    return None


def _is_unfinished(folder: Path, points: Sequence[Checkpoint], *several: Any) -> bool:
    """Whether a run is not at its end by any of these settings, and nobody trains it."""
    states = [point.state for point in points[-1:]]
    over = any(settings.horizon().is_over(state.step, state.elapsed) for settings in several for state in states)
    return not over and not is_held(folder)


def _tell_of_another(folder: Path) -> None:
    """For whoever meant it."""
    warnings.warn(
        f"resume=auto: the newest run, {nearby(folder)}, is unfinished, but of other settings than these; "
        f"resume={nearby(folder)} goes on with it",
        stacklevel=2,
    )


def _found(folder: Path) -> list[Checkpoint]:
    """The checkpoints of a run that shall go on; hours of training are not passed over in silence.

    Raises:
        UserError: one cannot be read.
    """
    try:
        return checkpoint.find(folder / "checkpoints")
    except UserError as error:
        warnings.warn(f"resume=auto passes over {nearby(folder)}: {str(error).removeprefix('run: ')}", stacklevel=2)
        raise


def overlaid(stored: Mapping[str, Any], data: Mapping[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """`stored`, and in the places that were typed what `data` has there.

    >>> overlaid({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5, "c": 6}, "d": 7}, ["a.b"])
    {'a': {'b': 5, 'c': 2}, 'd': 3}
    """
    merged = deepcopy(dict(stored))
    for path in typed:
        *parents, last = path.split(".")
        there, here = merged, data
        for key in parents:
            there, here = there.get(key), here.get(key)  # type: ignore[assignment]
            if not (isinstance(there, dict) and isinstance(here, Mapping)):
                break
        else:
            if last in here:
                there[last] = deepcopy(here[last])
    return merged


@contextmanager
def told_as(setting: str) -> Iterator[None]:
    """Have errors about a run's folder begin with the setting that names it, which is not always `run`."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{setting}: {str(error).removeprefix('run: ')}") from None


def _stored(cls: type[Any], folder: Path) -> Any:
    with told_as("resume"):
        content = read_settings(folder)
    with told_as(f"resume: {folder / CONFIG}"):
        return parse(cls, content)


def _same_run(stored: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether two settings are of one run, which may go on with either."""
    if wanted["model"]["vocab_size"] is None:
        stored["model"]["vocab_size"] = None
    either = {*MAY_DIFFER, *ASIDE}
    return all(stored[key] == wanted[key] for key in stored if key not in either)
