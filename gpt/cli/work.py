"""What hydra's launchers run: a job of a sweep, in this process or in another one."""

import gc
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from gpt import signals
from gpt.cli.composition import is_hydras, key_of
from gpt.cli.ending import ending, plain_words, tell
from gpt.cli.jobs import Job
from gpt.cli.script import Outcome, Script
from gpt.cli.table import Report, clock
from gpt.config import Config

S = TypeVar("S", bound=Config)


@dataclass
class Work(Generic[S]):
    """A sweep's jobs; called, it does the one that hydra's configuration names, and never fails itself.

    Launchers that start other processes pickle it.
    """

    script: Script[S]
    jobs: Mapping[int, tuple[Job, S]]
    """Those to run by number, with their checked settings."""
    folder: Path
    """The sweep's; each job has one in it, which the launcher makes."""
    reports: dict[int, Report] = field(default_factory=dict)
    """What came of those that ran in this process."""

    def __call__(self, _: DictConfig) -> tuple[int, Report]:
        """Do a job; its number and what came of it.

        Raises:
            Interrupted: a signal asked the program to end, so no other job shall start.
        """
        job, settings = self.jobs[int(HydraConfig.get().sweep.subdir)]
        folder = self.folder / str(job.number)
        self._announce(job)
        started = time.perf_counter()
        outcome: Outcome = {}
        status = "interrupted"
        try:
            with undisturbed(job), signals.raised():
                outcome = self.script.task(settings, folder if self.script.claim else None) or {}
            status = "done"
        except (Exception, SystemExit) as error:
            line = tell(error, self.script.debug(settings), f"job {job.number}: ").line
            status = f"failed: {line or 'nobody reads its output'}"
        finally:
            with suppress(OSError):
                folder.rmdir()  # which it is only where the job left nothing in it
            self.reports[job.number] = Report(status, outcome, time.perf_counter() - started)
        gc.collect()  # a failed job's model may hang in a circle, and the next one needs its memory
        return job.number, self.reports[job.number]

    def _announce(self, job: Job) -> None:
        try:
            print(f"\n=== {job}{self._left()} ===", flush=True)
        except BrokenPipeError as error:
            ending(error, debug=False)  # nothing is sent to a reader that is gone, and the job goes on

    def _left(self) -> str:
        """How long the jobs that follow will take, judged by those that are done."""
        done = [report.seconds or 0 for report in self.reports.values() if report.status == "done"]
        if not done:
            return ""
        return f", about {clock(sum(done) / len(done) * (len(self.jobs) - len(self.reports)))} left"


@contextmanager
def undisturbed(job: Job) -> Iterator[None]:
    """Within, `sys.argv` is as if `job` had been typed alone; after, that and the working directory are put back."""
    before = sys.argv[1:]
    sys.argv[1:] = [argument for argument in job.argv if not is_hydras(key_of(argument))]
    try:
        with chdir(Path.cwd()), plain_words():
            yield
    finally:
        sys.argv[1:] = before
