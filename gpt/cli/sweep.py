"""Sweeps: a command line that stands for several jobs, which hydra's launcher runs, or a plugin in its place.

All jobs are composed and checked before one of them runs. A job that fails does not end the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode

from gpt.cli.composition import Line, as_yaml, compose, groups_in, hydra_at, is_hydras, key_of
from gpt.cli.ending import ending, tell
from gpt.cli.jobs import Job, jobs_of
from gpt.cli.script import Script
from gpt.cli.table import Report, show, write
from gpt.cli.work import Work
from gpt.config import Config, UserError
from gpt.files import nearby

S = TypeVar("S", bound=Config)

QUIET = {"hydra.output_subdir": "null", "hydra/job_logging": "none", "hydra/hydra_logging": "none"}
"""Hydra keeps no records and logs of its own, unless it is told to."""


def sweep(script: Script[S], argv: Sequence[str]) -> int:
    """Run all jobs of a command line, and tell what came of them; the exit code: 1 where one is not done.

    Raises:
        UserError: every job is refused, so there is nothing to run.
        Interrupted: a signal asked the program to end.
    """
    jobs = jobs_of(argv, groups_in(script.config_dir))
    accepted, refused = _checked(script, jobs)
    debug = any(script.debug(settings) for _, settings in accepted.values())
    reports = {
        number: Report(f"failed: {tell(error, debug, f'job {number}: ').line}") for number, error in refused.items()
    }
    _, first = next(iter(accepted.values()))
    with _folder(script, argv, str(getattr(first, "name", script.config_name))) as folder:
        work = Work(script, accepted, folder)
        rest = "not run"
        try:
            work.reports.update(_launched(work, argv))
        except Exception as error:  # the launcher's own: no job raises
            rest = f"failed: {tell(error, debug).line}"
        except BaseException:
            if not work.reports:  # they ran in other processes
                rest = "interrupted"
            raise
        finally:
            reports = {job.number: Report(rest) for job in jobs} | reports | work.reports
            _conclude(script, jobs, reports, folder)
    return int(any(report.status != "done" for report in reports.values()))


def show_jobs(script: Script[S], argv: Sequence[str]) -> int:
    """Print the checked settings of each job as a YAML document; the exit code: 1 where one is refused.

    Raises:
        UserError: every job is refused.
    """
    jobs = jobs_of(argv, groups_in(script.config_dir))
    accepted, refused = _checked(script, jobs)
    for job in jobs:
        print(f"--- # {job}")
        if job.number in refused:
            tell(refused[job.number], False, f"job {job.number}: ")
        else:
            print(as_yaml(accepted[job.number][1]), end="")
    return int(bool(refused))


def _checked(script: Script[S], jobs: Sequence[Job]) -> tuple[dict[int, tuple[Job, S]], dict[int, Exception]]:
    """By number: the jobs that can run with their settings, and what is wrong with the others."""
    accepted: dict[int, tuple[Job, S]] = {}
    refused: dict[int, Exception] = {}
    for job in jobs:
        try:
            settings, _ = compose(script.config_name, job.argv, script.settings, script.config_dir)
            resumed = getattr(settings, "resume", None)
            if resumed and resumed in [getattr(earlier, "resume", None) for _, earlier in accepted.values()]:
                raise UserError(f"resume: {resumed} goes on in another job of this sweep; a run goes on once")
            accepted[job.number] = job, settings
        except Exception as error:
            refused[job.number] = error
    if not accepted:
        first, *others = dict.fromkeys(ending(error, debug=False).line for error in refused.values())
        raise UserError(f"{first}; none of the other jobs can run either" if others else first) from refused[1]
    return accepted, refused


@contextmanager
def _folder(script: Script[S], argv: Sequence[str], name: str) -> Iterator[Path]:
    """The folder of a sweep, where the script leaves anything; else one that goes away.

    Raises:
        UserError: it cannot be the one that is asked for.
    """
    typed = [argument.partition("=")[2] for argument in argv if key_of(argument) == "hydra.sweep.dir"]
    if script.claim is None:
        if typed:
            raise UserError(f"hydra.sweep.dir: {script.typed_as} leaves nothing in a folder; leave it out")
        with TemporaryDirectory() as folder:
            yield Path(folder)
    elif typed == [""]:
        raise UserError("hydra.sweep.dir: expected a folder, got nothing")
    else:
        yield script.claim(Path(typed[-1]) if typed else None, name).absolute()


def _launched(work: Work[S], argv: Sequence[str]) -> Mapping[int, Report]:
    """Have the launcher run the jobs; what came of them, by number."""
    script = work.script
    groups = groups_in(script.config_dir)
    typed = {key_of(a): a.partition("=")[2] for a in argv if is_hydras(key_of(a))}
    # A backslash keeps OmegaConf from looking for an x where a folder's name holds ${x}; those before it are doubled.
    place = QuotedString(re.sub(r"(\\*)\$\{", r"\1\1\\${", str(work.folder)), Quote.single).with_quotes()
    settings = [f"{key}={value}" for key, value in {**QUIET, **typed, "hydra.sweep.dir": place}.items()]
    overrides = [
        [o for o in Line(job.argv, groups).overrides if not is_hydras(key_of(o))] + [f"hydra.sweep.subdir={number}"]
        for number, (job, _) in work.jobs.items()
    ]
    with hydra_at(script.config_dir, script.config_name):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        config = hydra.compose_config(script.config_name, settings, RunMode.MULTIRUN, with_log_configuration=False)
        launcher = Plugins.instance().instantiate_launcher(
            HydraContext(hydra.config_loader, Callbacks()), task_function=work, config=config
        )
        return dict(job.return_value for job in launcher.launch(overrides, initial_job_idx=0))


def _conclude(script: Script[S], jobs: Sequence[Job], reports: Mapping[int, Report], folder: Path) -> None:
    """Tell and keep what came of the jobs."""
    print()
    try:
        show(jobs, reports)
    finally:
        if script.claim:
            write(folder / "sweep.csv", jobs, reports)
            print(f"{nearby(folder / 'sweep.csv')} holds this table")
