"""Runs that are struck again and again, and may not be lost: `python tests/campaign.py 200` kills 200 times.

A run is trained by train.py in a process of its own, until something strikes: kill -9, at any moment or inside a save;
a signal; a disk without room. Then the same command goes on in the same folder, and so forth until the run is at its
end. Its checkpoints must be, byte for byte, those of a run that nothing disturbed, and its metrics must have each row
once.

What takes long in a short training is to import PyTorch. So this process does it once, and each training is a fork of
it that runs train.py as a script: a real process, in a group of its own, that real signals end. Linux only.
"""

import csv
import mmap
import os
import random
import re
import runpy
import shutil
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ["OMP_NUM_THREADS"] = "1"  # read when PyTorch is imported: a process with threads cannot be forked

from gpt import checkpoint
from gpt.config import ROOT, UserError
from gpt.training.trainer import LOG_EVERY, Trainer

STEPS, SAVE_EVERY, SAVE_SECONDS, EVAL_EVERY = 240, 15, 0.3, 80
ARGUMENTS = [
    "tokenizer=byte", "dataset.years=[1790,1800]", "model.n_layer=1", "model.n_head=2", "model.d_model=16",
    "model.context=16", "model.dropout=0.1", "batch_size=8", f"steps={STEPS}", f"eval_every={EVAL_EVERY}",
    "eval_tokens=500", "logger=[]", "device=cpu", "precision=fp32", "compile=off",
]  # fmt: skip
OPTIMIZERS = ("adamw", "muon")
IN_STEPS, IN_TIME = str(SAVE_EVERY), f"{SAVE_SECONDS}s"
"""How often is saved."""

KILL, INSIDE, GRACE = "kill -9 at any moment", "kill -9 aimed at a save", "SIGTERM, then kill -9"
SIGNALS = ("SIGINT", "SIGTERM", "SIGUSR1")
FULL_SOON, FULL_LAST = "disk full for a while", "disk full at the end"
FULL_TRY, FULL_KILL = "disk full during one try", "disk full, then kill -9"
FULL = (FULL_SOON, FULL_LAST, FULL_TRY, FULL_KILL)
SHARE, AIM = 1 / 3, 0.4
"""Of the kills that strike inside a save: at least, and so many wanted, since those on full disks seldom do."""
DISK, PAGE = 1 << 20, 1 << 12
"""Bytes of the file system that fills up, and of what it gives out at once."""
PATIENCE = 180
"""Seconds after which a process that should have come to something is stuck."""

FOR_READERS = ("samples.jsonl", "summary.json", "report.html")
"""What a run leaves for whoever reads of it, and goes on without."""


class Lost(Exception):  # noqa: N818
    """A run that does not go on, or is not what it should be."""


class Missed(Exception):  # noqa: N818
    """The training was over before it could be struck."""


class NoDisk(Exception):  # noqa: N818
    """This user cannot mount a file system."""


class Process:
    """A process of its own that does what `python train.py ARGUMENTS` does in the folder `place`."""

    def __init__(self, place: Path, found: set[str], *arguments: str) -> None:
        self.found = found
        """What those before it have left of their saves."""
        self.code: int | None = None
        """What it ended with; negative for a signal that it did not handle."""
        self._errors = place / "stderr"
        self._shared = mmap.mmap(-1, 16)
        self.began = time.time()
        sys.stdout.flush()
        self._id = os.fork()
        if self._id == 0:
            self._become(place, arguments)
        with suppress(OSError):  # it has done so itself
            os.setpgid(self._id, self._id)

    def _become(self, place: Path, arguments: tuple[str, ...]) -> None:
        """What the fork does; it never returns."""
        code: object = 70
        try:
            os.setpgid(0, 0)
            os.chdir(place)
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            make = Trainer.make

            def watched(trainer: Trainer, step: int) -> object:
                """The update as it is; how many are made is known outside, whatever becomes of this process."""
                begun = self.trains_since or time.time()
                made = make(trainer, step)
                self._shared[:] = struct.pack("qd", step + 1, begun)
                return made

            Trainer.make = watched  # type: ignore[assignment, method-assign]
            sys.argv = ["train.py", *arguments]
            runpy.run_path(str(ROOT / "train.py"), run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 70)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.send(signal.SIGKILL)
        self.wait()

    @property
    def done(self) -> int:
        """Updates that the run has, of which this process made the last; 0: it has made none."""
        return int(struct.unpack("qd", self._shared[:])[0])

    @property
    def trains_since(self) -> float:
        """When it began its first update; 0: it has made none."""
        return float(struct.unpack("qd", self._shared[:])[1])

    @property
    def told(self) -> list[str]:
        """The lines on its standard error."""
        return self._errors.read_text(encoding="utf-8").splitlines()

    def is_over(self) -> bool:
        """Whether it has ended."""
        if self.code is None:
            found, status = os.waitpid(self._id, os.WNOHANG)
            if found:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def is_listening(self) -> bool:
        """Whether it handles signals by now."""
        caught = self._status("SigCgt")
        return bool(caught) and bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def is_stopped(self) -> bool:
        """Whether SIGSTOP has stopped it."""
        return self._status("State") == "T"

    def _status(self, name: str) -> str:
        """The first word that the system has under that name; none of a process that is gone."""
        with suppress(OSError):
            found = re.search(rf"^{name}:\s*(\w+)", Path(f"/proc/{self._id}/status").read_text(), re.M)
            return found[1] if found else ""
        return ""

    def send(self, number: int) -> None:
        """A signal to its group."""
        if not self.is_over():
            os.killpg(self._id, number)

    def until(self, what: Callable[[], object], name: str) -> bool:
        """Wait for `what`; False where it ended before.

        Raises:
            Lost: neither came.
        """
        deadline = time.monotonic() + PATIENCE
        while not what():
            if self.is_over():
                return bool(what())
            if time.monotonic() > deadline:
                self.send(signal.SIGKILL)
                raise Lost(f"stuck: no {name} after {PATIENCE} s, at update {self.done}: {self.told[-1:]}")
            time.sleep(0.0005)
        return True

    def wait(self) -> int:
        """Until it has ended; what with."""
        self.until(lambda: False, "end")
        assert self.code is not None
        return self.code

    def end_well(self) -> None:
        """Wait until it has ended, without a word.

        Raises:
            Lost: it had something to say.
        """
        if self.wait() or self.told:
            raise self.wrong()

    def wrong(self, what: str = "it") -> Lost:
        """The error of an end that is none."""
        return Lost(f"{what} ended with {self.code} after update {self.done}: {self.told}")


@dataclass
class Run:
    """A run that is being struck."""

    place: Path
    """Where train.py is called."""
    folder: Path
    """Its own."""
    optimizer: str
    save_every: str
    faults: list[str] = field(default_factory=list)
    """All that struck."""
    waiting: list[str] = field(default_factory=list)
    """Those after which it has not yet gone on."""
    told: set[int] = field(default_factory=set)
    """The updates that a signal has made it save after, so that metrics.csv has a row of each."""
    perhaps: set[int] = field(default_factory=set)
    """Those that it may have such a row of."""
    cut: bool = False
    """Whether it was killed with its last checkpoint made, so that no process comes that tidies up."""

    def __str__(self) -> str:
        return f"{self.place.name}, {self.optimizer}, save_every={self.save_every}"

    def start(self) -> Process:
        """One command begins it, and goes on with it wherever it was left."""
        mine = [f"optimizer={self.optimizer}", f"save_every={self.save_every}", f"hydra.run.dir={self.folder}"]
        return Process(self.place, self.saves(), *ARGUMENTS, *mine, "resume=auto")

    def saves(self) -> set[str]:
        """The names of the folders in which a checkpoint is being made, or was when a process was killed."""
        try:
            names = {path.name for path in (self.folder / "checkpoints").iterdir()}
        except FileNotFoundError:
            return set()
        return {name for name in names if name.startswith(checkpoint.SAVING)}

    def last(self) -> Path | None:
        """The last checkpoint."""
        return max((self.folder / "checkpoints").glob("step_*"), default=None)

    def saved(self) -> int:
        """The updates that the last checkpoint has; 0: there is none."""
        last = self.last()
        return int(last.name.removeprefix("step_")) if last else 0

    def is_finished(self) -> bool:
        """Whether the checkpoint of the last update is there."""
        return self.saved() == STEPS

    def check_whole(self) -> None:
        """What is called a checkpoint is one.

        Raises:
            Lost: one is not.
        """
        for folder in (self.folder / "checkpoints").glob("step_*"):
            try:
                checkpoint.read(folder)
                checkpoint.verify(folder)
            except UserError as error:
                raise Lost(f"a checkpoint is not whole: {error}") from None

    def check_same(self, undisturbed: "Run") -> None:
        """Compare it, at its end, with the run that nothing disturbed.

        Raises:
            Lost: something differs.
        """
        self.check_whole()
        kept, expected = (sorted(p.name for p in (run.folder / "checkpoints").iterdir()) for run in (self, undisturbed))
        if set(self.faults) & set(FULL):  # it may have been full just when the best one was to be saved
            alike = kept[-1:] == expected[-1:]
        else:
            alike = set(kept) >= set(expected) if self.cut else kept == expected
        if not alike:
            raise Lost(f"there are {kept}, not {expected}")
        for name in sorted(set(kept) & set(expected)):
            for file in (checkpoint.WEIGHTS, checkpoint.OPTIMIZER):
                one, other = (run.folder / "checkpoints" / name / file for run in (self, undisturbed))
                if one.read_bytes() != other.read_bytes():
                    raise Lost(f"{name}/{file} differs")
        there = {path.name for path in self.folder.iterdir()}
        if there - set(FOR_READERS) != {"config.yaml", "metrics.csv", "checkpoints"}:
            raise Lost(f"in its folder there are {sorted(there)}")
        (logged, evaluated), (_, evaluated_undisturbed) = self.logged(), undisturbed.logged()
        due = {*range(LOG_EVERY, STEPS + 1, LOG_EVERY), *self.told}
        if logged != sorted(due | self.perhaps & set(logged)):
            raise Lost(f"metrics.csv has the updates {logged}, with signals after {self.told} and {self.perhaps}")
        if evaluated != evaluated_undisturbed:
            raise Lost(f"metrics.csv has the evaluations {evaluated}, not {evaluated_undisturbed}")

    def logged(self) -> tuple[list[int], list[tuple[int, str]]]:
        """The updates that metrics.csv has a loss of, and its validation losses by update."""
        with (self.folder / "metrics.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        evaluated = [(int(row["step"]), row["validation_loss"]) for row in rows if row["validation_loss"]]
        return [int(row["step"]) for row in rows if row["loss"]], evaluated


@dataclass
class Row:
    """What came of one kind of fault."""

    struck: int = 0
    inside: int = 0
    """Of those, inside a save, as what was left on the disk tells."""
    resumed: int = 0
    lost: int = 0
    updates: int = 0
    """The most that had to be made again where so many are saved after."""
    seconds: float = 0.0
    """The longest time to be made again where so much is saved after."""


class Campaign:
    """So many kills, and other faults in proportion, to runs one after the other."""

    def __init__(self, place: Path, kills: int, disks: int, seed: int) -> None:
        self.place, self.disks = place, disks
        self.random = random.Random(seed)
        self.left = Counter({KILL: kills, **dict.fromkeys((GRACE, *SIGNALS), max(1, kills // 10))})
        """The faults that are to come, without the full disks."""
        self.planned = self.left.total() + disks
        self.most = 3 * self.planned
        """Kills after which no more are aimed at saves, however few of them have hit one."""
        self.table: dict[str, Row] = {}
        self.stages: Counter[str] = Counter()
        """Of the kills inside a save, how far that had come."""
        self.problems: list[str] = []
        self.runs = 0
        self.began = time.monotonic()
        self.undisturbed = {optimizer: self._undisturbed(optimizer) for optimizer in OPTIMIZERS}

    def _undisturbed(self, optimizer: str) -> Run:
        """A run to compare with; how long what takes is measured by it."""
        run = self.begin(f"undisturbed {optimizer}", optimizer, IN_STEPS)
        with run.start() as process:
            process.until(lambda: process.done, "update")
            self.startup = time.time() - process.began
            process.until(run.saves, "save")
            begun = time.time()
            process.until(lambda: not run.saves(), "end of a save")
            self.saving = time.time() - begun
            process.end_well()
            self.training = time.time() - process.trains_since
        run.check_same(run)
        return run

    def begin(self, name: str, optimizer: str, save_every: str, disk: Path | None = None) -> Run:
        """A run, of which nothing is there yet."""
        place = self.place / name
        place.mkdir()
        return Run(place, (disk or place) / "run", optimizer, save_every)

    def next_run(self, disk: Path | None = None) -> Run:
        """A run of another kind than the one before."""
        self.runs += 1
        save_every = IN_STEPS if disk else (IN_STEPS, IN_TIME)[self.runs // 2 % 2]
        return self.begin(f"run {self.runs}", OPTIMIZERS[self.runs % 2], save_every, disk)

    @contextmanager
    def judged(self, run: Run) -> Iterator[None]:
        """Within, a run comes to its end; what is wrong with it is noted."""
        try:
            yield
            run.check_same(self.undisturbed[run.optimizer])
        except Lost as lost:
            for name in run.waiting or run.faults[-1:]:
                self.row(name).lost += 1
            self.problems.append(f"{run}: {lost}; it was struck by {run.faults}")
            print(f"LOST: {self.problems[-1]}", flush=True)
        else:
            self.credit(run.waiting)
            shutil.rmtree(run.place)

    def row(self, name: str) -> Row:
        """Of the table."""
        return self.table.setdefault(name, Row())

    def credit(self, faults: list[str]) -> None:
        """A run has gone on after these."""
        for name in faults:
            self.row(name).resumed += 1

    def killed(self) -> tuple[int, int]:
        """How often kill -9 struck, and how often of that inside a save."""
        rows = [row for name, row in self.table.items() if "kill" in name]
        return sum(row.struck for row in rows), sum(row.inside for row in rows)

    def note(self, run: Run, name: str) -> Row:
        """A fault has struck."""
        self.left[KILL if name == INSIDE else name] -= 1
        self.left += Counter()  # without what none are left of
        run.faults.append(name)
        run.waiting.append(name)
        row = self.row(name)
        row.struck += 1
        done = sum(row.struck for row in self.table.values())
        if done % max(1, self.planned // 40) == 0:
            left = (time.monotonic() - self.began) / done * max(0, self.planned - done)
            kills, inside = self.killed()
            what = f"{kills} kills, {inside} inside a save; {self.runs} runs, {len(self.problems)} lost"
            print(f"{done} of {self.planned} faults: {what}; about {left / 60:.1f} min left", flush=True)
        return row

    # What strikes runs that have room.

    def strike_all(self) -> None:
        """All that is left to strike."""
        while self.choose():
            run = self.next_run()
            with self.judged(run):
                while not run.is_finished():
                    self.strike(run)

    def choose(self) -> str | None:
        """What strikes next; None: all has."""
        name = self.random.choice(list(self.left.elements()) or [None])
        kills, inside = self.killed()
        wanted = inside < (kills + (name is not None)) * AIM and kills < self.most
        return INSIDE if name in (KILL, None) and wanted else name

    def strike(self, run: Run) -> None:
        """Have the run go on, and be struck at a random moment."""
        earlier, run.waiting = run.waiting, []
        try:
            with run.start() as process:
                try:
                    self.strike_process(run, process, self.choose())
                except Missed:
                    if process.wait() != 128 + signal.SIGTERM:  # which was sent before it was to be killed
                        process.end_well()
        finally:
            if process.done or process.code == 0:
                self.credit(earlier)
            else:
                run.waiting = earlier + run.waiting

    def strike_process(self, run: Run, process: Process, name: str | None) -> None:
        """One fault.

        Raises:
            Missed: it came too late.
        """
        if name is None:
            raise Missed
        if name == INSIDE:
            self.aim(run, process)
        else:
            self.let_pass(process, name)
        if name == GRACE:
            there = run.saves()
            process.send(signal.SIGTERM)
            process.until(lambda: run.saves() - there, "save")
            self.wait(1.5 * self.saving)
            run.perhaps.add(process.done)
        if name in SIGNALS:
            self.signal(run, process, name)
        else:
            self.kill(run, process, name)

    def wait(self, seconds: float) -> None:
        """Up to so many seconds."""
        time.sleep(self.random.uniform(0, seconds))

    def let_pass(self, process: Process, name: str) -> None:
        """Some time: a fourth of the faults come while the process starts, the others while it trains."""
        if name != GRACE and self.random.random() < 0.25:
            if name in SIGNALS:
                process.until(process.is_listening, "handler of signals")
            seconds = self.random.uniform(0, self.startup)
        else:
            process.until(lambda: process.done, "update")
            seconds = self.random.uniform(0, 0.4 * self.training)
        end = time.monotonic() + seconds
        if not process.until(lambda: time.monotonic() > end, "passing of time") or process.is_over():
            raise Missed

    def aim(self, run: Run, process: Process) -> None:
        """Wait until one of the next saves is under way, and a little."""
        seen = set(process.found)
        for _ in range(self.random.randint(1, 4)):
            if not process.until(lambda: run.saves() - seen, "save"):
                raise Missed
            seen.update(run.saves())
        self.wait(1.2 * self.saving)

    def kill(self, run: Run, process: Process, name: str) -> None:
        """Kill -9, and look at what is left.

        Raises:
            Missed: it had ended.
            Lost: a checkpoint is not whole, or more is lost than should be.
        """
        process.send(signal.SIGKILL)
        now = time.time()
        if process.wait() != -signal.SIGKILL:
            if process.code in (0, 128 + signal.SIGTERM):
                raise Missed
            raise process.wrong()
        row = self.note(run, name)
        for workshop in run.saves() - process.found:
            row.inside += 1
            self.stages[stage(run.folder / "checkpoints" / workshop, run.saved() == process.done)] += 1
        run.check_whole()
        run.cut = run.is_finished()
        last = run.last()
        lost = process.done - run.saved() if process.done else 0
        if run.save_every == IN_TIME:
            since = max(process.trains_since, last.stat().st_mtime if last else 0)
            row.seconds = max(row.seconds, now - since if lost else 0)
        elif name not in FULL:
            row.updates = max(row.updates, lost)
            if lost > SAVE_EVERY:
                raise Lost(f"{lost} updates are lost after update {process.done}, and every {SAVE_EVERY} are saved")

    def signal(self, run: Run, process: Process, name: str) -> None:
        """A signal that asks it to end: it saves, and tells so by one line and its exit code.

        Raises:
            Missed: it had ended.
            Lost: it does not.
        """
        number = getattr(signal, name)
        process.send(number)
        process.wait()
        if process.code == 0 or (process.code == -number and run.is_finished()):
            raise Missed
        self.note(run, name)
        if process.code != 128 + number or len(process.told) != 1 or not process.told[0].startswith("interrupted"):
            raise process.wrong()
        run.check_whole()
        if process.done:
            run.told.add(process.done)
            if run.saved() != process.done:
                raise Lost(f"{name}: interrupted after update {process.done}, and {run.saved()} is saved")

    # What strikes runs on a disk that fills up.

    def fill_all(self) -> None:
        """Each way of filling a disk in turn.

        Raises:
            NoDisk: there is none to fill.
        """
        for name in islice(cycle(FULL), self.disks):
            missed = True
            while missed:
                with small_disk(self.place / f"disk {self.runs + 1}") as place:
                    run = self.next_run(place)
                    with self.judged(run):
                        try:
                            self.fill(run, Disk(place, self.random), name)
                            missed = False
                        except Missed:
                            pass

    def fill(self, run: Run, disk: "Disk", name: str) -> None:
        """A run, to its end, whose disk has no room from a random moment on.

        Raises:
            Missed: it was at its end before.
            Lost: it is not as promised.
        """
        last_but_one = STEPS - SAVE_EVERY
        soon = self.random.randint(SAVE_EVERY, STEPS // 2)
        at = soon if name in (FULL_SOON, FULL_KILL) else last_but_one + 1
        with run.start() as process:
            if not process.until(lambda: stopped_between_saves(run, process, at), f"update {at}"):
                raise Missed
            disk.fill(taken_by(run.last()))
            found, saved, done = run.saves(), run.saved(), process.done
            process.send(signal.SIGCONT)
            if name == FULL_LAST:
                self.end_without_room(process, saved)
                self.note(run, name)
            elif name == FULL_SOON:
                if not process.until(lambda: any("is not saved" in line for line in process.told), "warning"):
                    raise process.wrong()
                process.until(lambda: process.done > done, "update while the disk is full")
                disk.make_room()
                self.note(run, name)
                self.end_with_warnings(process)
            else:
                process.until(lambda: run.saves() - found, "save")
                process.until(lambda: not run.saves() - found, "failure of the save")
                if name == FULL_TRY:
                    disk.make_room()
                    self.note(run, name)
                    self.end_with_warnings(process)
                else:
                    self.wait(5)
                    self.kill(run, process, name)
        if name in (FULL_LAST, FULL_KILL):
            with run.start() as process:
                self.end_without_room(process, saved)
            run.check_whole()
            disk.make_room()
            with run.start() as process:
                process.end_well()

    def end_without_room(self, process: Process, saved: int) -> None:
        """What it could not save is told in one line, which says where to go on."""
        process.wait()
        errors = [line for line in process.told if not line.startswith("warning: ")]
        if process.code != 1 or len(errors) != 1:
            raise process.wrong()
        if not re.fullmatch(rf"error: .*no room is left on the disk; .*resume=.*step_{saved:08d}", errors[0]):
            raise process.wrong()

    def end_with_warnings(self, process: Process) -> None:
        """It trains to its end, whatever it warned of."""
        if process.wait() or not all(line.startswith("warning: ") for line in process.told):
            raise process.wrong()

    def show(self) -> None:
        """The table, and what it comes to."""
        rows = [("fault", "struck", "inside a save", "resumed", "lost", "longest loss")]
        for name, row in self.table.items():
            killed = "kill" in name
            loss = f"{row.updates} updates or {row.seconds:.2f} s" if killed and name not in FULL else ""
            inside = f"{row.inside}" if killed else ""
            rows.append((name, f"{row.struck}", inside, f"{row.resumed}", f"{row.lost}", loss))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for cells in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
        kills, inside = self.killed()
        stages = ", ".join(f"{name} {number}" for name, number in self.stages.most_common())
        print(f"\nkill -9: {kills} times, {inside} of them inside a save ({stages})")
        print(f"saved after every {SAVE_EVERY} updates or every {SAVE_SECONDS} s, in turn")
        minutes = (time.monotonic() - self.began) / 60
        print(f"{self.runs} runs of {STEPS} updates, {len(self.problems)} lost or different; {minutes:.1f} min")
        for problem in self.problems:
            print(f"LOST: {problem}")


def stage(workshop: Path, saved: bool) -> str:
    """How far a save had come that left this; `saved` tells whether its checkpoint is there."""
    made = list(workshop.glob("step_*"))
    if not made:
        return "renamed" if saved else "just begun"
    return "written, not renamed" if (made[0] / checkpoint.CHECKSUMS).exists() else "half written"


def stopped_between_saves(run: Run, process: Process, at: int) -> bool:
    """Stop a process if it has made the update `at`, and is so far from saves that none uses or frees any room."""

    def is_between() -> bool:
        return process.done > run.saved() > 0 and not run.saves()

    if process.done < at or not is_between():
        return False
    process.send(signal.SIGSTOP)
    process.until(process.is_stopped, "stop")
    if is_between():
        return True
    process.send(signal.SIGCONT)
    return False


class Disk:
    """A small file system, and a file on it that takes its room."""

    def __init__(self, place: Path, draw: random.Random) -> None:
        self._file, self._random = place / "taken", draw

    def fill(self, enough: int) -> None:
        """Leave some room, but less than `enough` bytes."""
        with self._file.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(PAGE)) == PAGE:
                pass
        room = PAGE * self._random.randrange(enough // PAGE)
        os.truncate(self._file, max(0, self._file.stat().st_size - room))

    def make_room(self) -> None:
        """Take the file away."""
        self._file.unlink()


def taken_by(folder: Path | None) -> int:
    """Bytes that the files in a folder take of a disk."""
    return sum(-(-path.stat().st_size // PAGE) * PAGE for path in folder.iterdir()) if folder else 0


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """Within, a file system of `DISK` bytes is there.

    Raises:
        NoDisk: this user cannot mount one.
    """
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        place.rmdir()
        raise NoDisk(getattr(error, "stderr", None) or str(error)) from None
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def main() -> int:
    """The campaign; 1 where something was lost, or too few of the kills struck inside a save."""
    given = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument)
    kills = int(next((argument for argument in sys.argv[1:] if "=" not in argument), "200"))
    disks = int(given.get("disks", kills // 8))
    with TemporaryDirectory(prefix="campaign-", dir=given.get("in")) as place:
        campaign = Campaign(Path(place), kills, disks, int(given.get("seed", "0")))
        campaign.strike_all()
        try:
            campaign.fill_all()
        except NoDisk as error:
            print(f"skipped: no disk to fill, since no tmpfs can be mounted: {str(error).strip()}")
        campaign.show()
    kills, inside = campaign.killed()
    return int(bool(campaign.problems) or inside < kills * SHARE)


if __name__ == "__main__":
    sys.exit(main())
