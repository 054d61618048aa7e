"""Folders from a stranger: what comes of opening runs that were damaged, or made to do harm (`mutations.py`).

    python tests/hostile.py 5000               # so many folders in one process, and 50 of those refused by sample.py
    python tests/hostile.py 1 number=1234      # one of them again, with what was said of it

A folder is opened to be sampled, resumed, begun from, and looked at by `resume=auto`. Each time it opens right or is
refused by one line of a `UserError`; anything else misbehaves: another error, code that runs, a file outside that is
read or changed, more than `PATIENCE` seconds, more memory than `allowed`. `resume=auto` passes over what it refuses.
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from mutations import BASES, CHOICES, KINDS, SEED, VOCABULARY, Case, build_base, make_case

import gpt
from gpt.checkpoint import CHECKSUMS, CONFIG, STATE, WEIGHTS
from gpt.config import LONGEST, ROOT, UserError, parse
from gpt.device import choose_device
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.continuation import newest_unfinished
from gpt.training.guard import Guard
from gpt.training.origin import find_origin
from gpt.training.parallel import spread
from gpt.training.settings import TrainSettings
from gpt.training.update import Update

PATIENCE = 20
"""Seconds for one opening."""
SPARE = 16 << 20
"""Bytes of memory that an opening may take whatever the size of the files: libraries keep pages of their own."""
ALONE = Processes(torch.device("cpu"))


def to_sample(folder: Path) -> None:
    """As sample.py and gpt.load do; the weights are those whose checksums are right."""
    run = gpt.load(folder, "cpu", "fp32")
    point = run.checkpoint.folder
    sums = json.loads((point / CHECKSUMS).read_bytes())
    for name in (WEIGHTS, CONFIG, STATE, VOCABULARY):
        with (point / name).open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == sums[name], f"{name} does not verify"
    look(run.model)
    assert "\n" not in run.describe()
    run.tokenizer.decode(range(min(9, run.tokenizer.vocab_size)))


def to_resume(folder: Path) -> None:
    """As train.py resume=FOLDER does, but for the text."""
    settings = completed(resume=str(folder))
    origin = find_origin(settings, None)
    precision = origin.precision(settings.precision, choose_device(settings.device))
    settings.check_model(precision)
    if origin.weights:
        model = origin.load(GPT(settings.model), ALONE)
        guard = Guard(settings.optimizer.build(model), settings.clip, precision.scaler())
        origin.restore(Update(spread(model, ALONE, settings.parallel), guard, precision, None))
        origin.start(settings.horizon(), ALONE)
        assert all("\n" not in text for _, text in origin.describe())
        look(model.eval())


def to_begin(folder: Path) -> None:
    """As train.py init=FOLDER does, but for the text."""
    settings = completed(init=str(folder))
    origin = find_origin(settings, None)
    settings.check_model(origin.precision(settings.precision, ALONE.device))
    assert origin.tokenizer is not None
    look(origin.load(GPT(settings.model.for_vocabulary(origin.tokenizer.vocab_size)), ALONE).eval())


def to_find(folder: Path) -> None:
    """As train.py resume=auto does, which passes over what is damaged."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        newest_unfinished(completed(), [folder])
    for warning in given:
        check_line(str(warning.message))


def completed(**more: str) -> TrainSettings:
    """The settings of a command line that gives these alone."""
    data = {**parse(TrainSettings, {**CHOICES, "device": "cpu"}).model_dump(), **more}
    return parse(TrainSettings, TrainSettings.completed(data, set(more), None))


def look(model: GPT) -> None:
    """Logits are finite numbers, as many as there are tokens."""
    length = min(8, model.config.context)
    with torch.inference_mode():
        logits = model(torch.arange(length)[None] % model.config.vocab_size)
    assert logits.shape == (1, length, model.config.vocab_size), f"logits of shape {tuple(logits.shape)}"
    assert logits.isfinite().all(), "logits that are not finite"


WAYS: dict[str, Callable[[Path], None]] = {
    "load": to_sample,
    "resume=": to_resume,
    "init=": to_begin,
    "resume=auto": to_find,
}


class Outcome(NamedTuple):
    """What came of opening a folder."""

    case: Case
    way: str
    refused: str
    """The line that was said; empty where it opened."""
    wrong: str
    """How it misbehaved; empty where it did not."""
    seconds: float
    grown: int
    """Bytes that the process had at most more than before."""


def allowed(way: str, size: int) -> int:
    """Bytes of memory that files of `size` bytes may take: the file and its tensors.

    To train a model, which may have a file of its weights alone, takes its gradients and the optimizer's moments too.
    """
    return SPARE + (6 if way == "resume=" else 2) * size


def try_all(case: Case, watch: "Watch") -> list[Outcome]:
    """Open a folder in all ways."""
    return [try_one(case, way, watch) for way in WAYS]


def try_one(case: Case, way: str, watch: "Watch") -> Outcome:
    """Open a folder, and see what comes of it."""
    refused = wrong = ""
    before, started = watch.begin(case), time.perf_counter()
    try:
        with impatient():
            WAYS[way](case.folder)
    except UserError as error:
        refused = str(error)
        try:
            check_line(refused)
        except AssertionError as bad:
            wrong = str(bad)
    except (Exception, Late) as error:
        wrong = f"{type(error).__name__}: {error}"[:300]
    seconds = time.perf_counter() - started
    grown = watch.grown(before)
    wrong = wrong or watch.harm()
    if not wrong and grown > allowed(way, case.size):
        wrong = f"took {grown >> 20} MiB for files of {case.size:,} bytes"
    return Outcome(case, way, refused, wrong, seconds, grown)


def check_line(text: str) -> None:
    """What is told is one line, not too long, without characters that a terminal obeys."""
    assert text.strip(), "nothing is said"
    assert len(text.splitlines()) == 1, f"several lines: {text[:200]!r}"
    assert len(text) <= LONGEST, f"a line of {len(text)} characters: {text[:200]!r}"
    assert not any(unicodedata.category(c) == "Cc" for c in text), f"control characters: {text[:200]!r}"


class Late(BaseException):
    """It took too long."""


@contextmanager
def impatient() -> Iterator[None]:
    """Within, what takes too long is ended, be it a pipe that nobody writes to."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise Late(f"not done after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def bounded(room: int = 3 << 30) -> Iterator[None]:
    """Within, the process gets no more than so much memory: a bomb ends as an error, not the machine."""
    if not Path("/proc/self/statm").exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class", "socket.")
HARMFUL = ("harm", "this", "antigravity")


class Watch:
    """Sees what is done while a folder is opened: code that runs, modules, files outside, memory."""

    active: "Watch | None" = None
    hooked = False

    def __init__(self) -> None:
        self.case: Case | None = None
        self.events: list[str] = []
        if not Watch.hooked:  # a hook stays for ever, so it is one for all
            sys.addaudithook(lambda event, args: Watch.active.heard(event, args) if Watch.active else None)
            Watch.hooked = True

    def begin(self, case: Case) -> int:
        """Watch from here on; the bytes that the process has."""
        self.case, self.events = case, []
        self.outside = content(case.folder.parent / "outside")
        self.inside = sorted(case.folder.parent.iterdir())
        Watch.active = self
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        return memory("VmRSS")

    def grown(self, before: int) -> int:
        Watch.active = None
        return max(0, memory("VmHWM") - before)

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """What Python tells of."""
        if event.startswith(FORBIDDEN):
            self.events.append(f"{event} {args!r:.100}")
        if event == "open" and isinstance(args[0], str) and self.case:
            place = Path(os.path.realpath(args[0]))
            if place.is_relative_to(os.path.realpath(self.case.folder.parent / "outside")) and place.is_file():
                self.events.append(f"opened {place.name} outside")

    def harm(self) -> str:
        """What was done that may not be."""
        assert self.case
        done = [*self.events, *(f"imported {name}" for name in HARMFUL if name in sys.modules)]
        if content(self.case.folder.parent / "outside") != self.outside:
            done.append("files outside were changed")
        if sorted(self.case.folder.parent.iterdir()) != self.inside:
            done.append("files beside the run were changed")
        if Path("harm").exists():
            done.append("ran code")
            Path("harm").unlink()
        return "; ".join(done)


def memory(name: str) -> int:
    """A line of the process's own account, in bytes; 0 where there is none."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
    return 0


def content(folder: Path) -> dict[str, Any]:
    """What is in a folder: bytes of small files, sizes of others."""
    found = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        small = path.is_file() and not path.is_symlink() and info.st_size < 1 << 16
        found[str(path.relative_to(folder))] = path.read_bytes() if small else (info.st_mode, info.st_size)
    return found


@contextmanager
def prepared(place: Path) -> Iterator[tuple[Path, Watch]]:
    """The runs to mutate, all opened once so that what libraries do once is done; in a folder with a module `harm`."""
    bases = place / "bases"
    for name in BASES:
        build_base(name, bases / name)
    (place / "harm.py").write_text("class Harm:\n    pass\n")
    before, sys.path[:] = Path.cwd(), [*sys.path, str(place)]
    os.chdir(place)
    watch = Watch()
    try:
        for name in BASES:
            shutil.copytree(bases / name, place / "whole" / "run")
            (place / "whole" / "outside").mkdir()
            for outcome in try_all(Case(-1, "none", place / "whole" / "run", 1 << 30), watch):
                assert (outcome.refused, outcome.wrong) == ("", ""), f"{name}: {outcome}"
            shutil.rmtree(place / "whole")
        with bounded():
            yield bases, watch
    finally:
        Watch.active = None
        os.chdir(before)
        sys.path.remove(str(place))


def campaign(numbers: Sequence[int], place: Path, seed: int = SEED) -> Iterator[Outcome]:
    """Make the folders of these numbers one after another, and open each in all ways."""
    with prepared(place) as (bases, watch):
        for number in numbers:
            yield from try_all(make_case(number, bases, place / "case", seed), watch)


def sample_aside(case: Case) -> str:
    """What is wrong with how sample.py, in a process of its own, ends with a folder that is refused; or nothing."""
    command = [sys.executable, str(ROOT / "sample.py"), f"run={case.folder}", "device=cpu", "prompt=a"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=env, cwd=case.folder.parent, capture_output=True, text=True, timeout=120)
    lines = ended.stderr.splitlines()
    if (ended.returncode, len(lines), ended.stdout) != (2, 1, "") or not lines[0].startswith("error: run: "):
        return f"exit code {ended.returncode}, {len(lines)} lines: {ended.stderr[:300]!r}"
    return ""


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Kind by kind: how many folders, and of their openings how many opened, were refused, misbehaved."""
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        kinds[outcome.case.kind].append(outcome)
    rows = [("", "folders", "opened", "refused", "misbehaved", "slowest, s", "memory, MiB")]
    for kind, some in [*((kind, kinds[kind]) for kind in KINDS if kinds[kind]), ("all", list(outcomes))]:
        wrong, refused = sum(bool(o.wrong) for o in some), sum(bool(o.refused) and not o.wrong for o in some)
        slowest, most = max(o.seconds for o in some), max(o.grown for o in some)
        counts = (len({o.case.number for o in some}), len(some) - wrong - refused, refused, wrong)
        rows.append((kind, *(f"{count:,}" for count in counts), f"{slowest:.2f}", f"{most / (1 << 20):.1f}"))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    cells = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return ["  ".join([row[0].ljust(widths[0]), *line[1:]]) for row, line in zip(rows, cells, strict=True)]


def main() -> int:
    """The campaign of the command line; 1 where anything misbehaved."""
    count = int(next((a for a in sys.argv[1:] if a.isdecimal()), 5000))
    options = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
    first, seed = int(options.get("number", 0)), int(options.get("seed", SEED))
    aside = min(int(options.get("aside", 50)), count) if "number" not in options else 0
    torch.set_num_threads(1)
    outcomes, started = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        for outcome in campaign(range(first, first + count), Path(name).resolve(), seed):
            outcomes.append(outcome)
            if outcome.wrong:
                print(f"{outcome.case.number} {outcome.case.kind}, {outcome.way}: {outcome.wrong}", flush=True)
            elif "number" in options:
                print(f"{outcome.case.number} {outcome.case.kind}, {outcome.way}: {outcome.refused or 'opened'}")
    print(*table(outcomes), sep="\n")
    ratio = max(outcomes, key=lambda o: o.grown - o.case.size)
    print(
        f"{count:,} folders, {len(WAYS)} ways each, in {time.perf_counter() - started:,.0f} s; most memory beyond the "
        f"size of the files: {(ratio.grown - ratio.case.size) / (1 << 20):.1f} MiB"
    )
    bad = sum(bool(outcome.wrong) for outcome in outcomes)
    refused = {o.case.number: o.case.kind for o in outcomes if o.way == "load" and o.refused}
    bad += scripts(in_turn(refused, aside), seed)
    return int(bad > 0)


def in_turn(refused: dict[int, str], count: int) -> list[int]:
    """So many of the numbers, of all kinds in turn."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, kind in refused.items():
        kinds[kind].append(number)
    turns = [numbers[turn] for turn in range(len(refused)) for numbers in kinds.values() if turn < len(numbers)]
    return turns[:count]


def scripts(numbers: Sequence[int], seed: int) -> int:
    """Have sample.py open some that are refused; how many misbehaved."""
    if not numbers:
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        bases = Path(name).resolve() / "bases"
        for base in BASES:
            build_base(base, bases / base)
        for number in numbers:
            case = make_case(number, bases, bases.parent / "case", seed)
            if wrong := sample_aside(case):
                bad += 1
                print(f"{number} {case.kind}, sample.py: {wrong}")
    print(f"{len(numbers)} of those refused, by sample.py: {len(numbers) - bad} with one line and exit code 2")
    return bad


if __name__ == "__main__":
    sys.exit(main())
