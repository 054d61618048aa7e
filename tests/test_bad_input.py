"""Bad input of every kind: one line that says what is wrong, where and what to do, exit code 2, nothing left behind.

The scripts run in this process, in a folder that stands for the checkout and holds a run that was trained there; one or
two of a kind run in a process of their own, where the locale is C. There is no network.
"""

import hashlib
import importlib.util
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from gpt import cli, run, run_folder, runs
from gpt.config import ROOT
from gpt.data.dataset import hub
from gpt.data.tokenizer.byte import ByteConfig
from gpt.files import hold
from gpt.generation.settings import SampleSettings
from gpt.training.settings import TrainSettings

pytestmark = pytest.mark.filterwarnings("error")

TEXT = "To be, or not to be, that is the question: 'tis nobler\n" * 40
OWN = "dataset=text dataset.path=text.txt tokenizer=char"
TINY = f"{OWN} model.n_layer=1 model.n_head=2 model.d_model=8 model.context=16 compile=off logger=[] steps=4 device=cpu"
POINT = "run/checkpoints/step_00000004"
WEIGHTS, OPTIMIZER, VOCABULARY = "model.safetensors", "optimizer.safetensors", "vocabulary.json"
CONFIG, STATE, CHECKSUMS = "config.json", "state.json", "checksums.json"
NOWHERE = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9")

Arrange = Callable[[Path], object]


class Case(NamedTuple):
    """A mistake."""

    typed: str
    told: str
    """A regular expression of the line behind `error: `, which names the folder HERE."""
    arrange: Arrange = lambda here: None
    """Makes the folder bad; a descriptor that it gives is closed afterwards."""
    process: bool = False
    """Whether it runs in a process of its own."""


def made(name: str, content: bytes = b"") -> Arrange:
    """A file."""

    def arrange(here: Path) -> None:
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_bytes(content)

    return arrange


def replaced(name: str, old: str, new: str) -> Arrange:
    """A file with other text in it."""
    return lambda here: made(name, (here / name).read_bytes().replace(old.encode(), new.encode()))(here)


def shortened(name: str) -> Arrange:
    """A file without its end."""
    return lambda here: made(name, (here / name).read_bytes()[:-10])(here)


def flipped(name: str) -> Arrange:
    """A file of which the last bit is another."""
    return lambda here: made(name, (here / name).read_bytes()[:-1] + bytes([(here / name).read_bytes()[-1] ^ 1]))(here)


def emptied(name: str) -> Arrange:
    """A folder without its files."""
    return lambda here: [path.unlink() for path in (here / name).iterdir()]


def sealed(change: Arrange) -> Arrange:
    """A checkpoint that was changed, and its checksums with it, as someone who means harm would."""

    def arrange(here: Path) -> None:
        change(here / POINT)
        files = [path for path in (here / POINT).iterdir() if path.name != CHECKSUMS]
        sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        (here / POINT / CHECKSUMS).write_text(json.dumps(sums))

    return arrange


def edited(name: str, path: str, value: object) -> Arrange:
    """A sealed checkpoint with a value in a JSON file of it."""

    def change(point: Path) -> None:
        content = inner = json.loads((point / name).read_text())
        *parents, last = path.split(".")
        for parent in parents:
            inner = inner[parent]
        inner[last] = value
        (point / name).write_text(json.dumps(content))

    return sealed(change)


class Harm:
    """Makes a file where it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("harm"),)


def pickled(name: str) -> Arrange:
    """A sealed checkpoint with a pickle in it."""
    return sealed(lambda point: (point / name).write_bytes(pickle.dumps(Harm())))


def led_out(point: Path) -> None:
    """The weights lie elsewhere."""
    (point / WEIGHTS).rename(point.parents[2] / "outside")
    (point / WEIGHTS).symlink_to("../../../outside")


def leads_out_by_name(here: Path) -> None:
    made("outside", b"a secret")(here)
    name = "../../../outside"
    sums = json.loads((here / POINT / CHECKSUMS).read_text())
    made(f"{POINT}/{CHECKSUMS}", json.dumps({**sums, name: hashlib.sha256(b"a secret").hexdigest()}).encode())(here)


def unreadable(here: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    (here / "closed.txt").write_text(TEXT)
    (here / "closed.txt").chmod(0)


def each(told: str, arrange: Arrange, process: bool = False, resume: bool = True) -> list[Case]:
    """What opens the run, each told with its own setting; `resume` too, where that reads what is bad."""
    openers = {"run": "sample run=run prompt=to", "init": f"train {OWN} init=run"}
    openers |= {"resume": "train resume=run steps=9"} if resume else {}
    return [Case(typed, f"{key}: {told.replace('SET', key)}", arrange, process) for key, typed in openers.items()]


def damaged(name: str, arrange: Arrange, told: str = "", resume: bool = True) -> list[Case]:
    """`each`, of a file of the checkpoint."""
    told = told or r"(?: is missing or was changed since it was saved|: this is no JSON text, so the file is damaged)"
    return each(
        rf"\S*{POINT}/{name}{told}.*; remove this checkpoint, and the one before it is taken", arrange, resume=resume
    )


KEEPS = "; a resumed run keeps all but .*: leave it out, or start a new run with init="
NAME = "name the folder of a run"
BOMB = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
"""Of each list there are nine in the next."""

CASES = {
    "file missing": [
        Case("train dataset=text dataset.path=txet.txt",
             r"dataset\.path: there is no HERE/txet.txt; did you mean HERE/text.txt\? name a file", process=True),
        Case(f"train {OWN} dataset.validation_path=*.rst",
             r"dataset\.validation_path: no file matches HERE/\*\.rst; name a"),
        Case("train dataset=hub dataset.path=not/at/all",
             r"dataset\.path: there is no folder not/at/all; a data set of the"),
        Case("sample run=run prompts=not.txt",
             r"prompts: cannot read the file not\.txt: No such file.*; name one with one"),
    ],
    "file unreadable": [
        Case("train dataset=text dataset.path=pipe", r"dataset\.path: HERE/pipe is a device, a pipe.*; name a file",
             lambda here: os.mkfifo(here / "pipe")),
        Case("train dataset=text dataset.path=text.txt/in", r"dataset\.path: there is no HERE/text\.txt/in; name a"),
        Case("train dataset=text dataset.path=loop", r"dataset\.path: there is no HERE/loop; name a file",
             lambda here: (here / "loop").symlink_to("loop")),
        Case("train dataset=text dataset.path=closed.txt", r"HERE/closed\.txt: cannot be read: Permission denied; mend",
             unreadable),
        Case("sample run=run prompts=.",
             r"prompts: cannot read the file \.: Is a directory; name one with one prompt a line"),
    ],
    "file empty": [
        Case("train dataset=text dataset.path=none.txt", r"HERE/none\.txt: there is no text in it; name a file",
             made("none.txt")),
        Case("train dataset=text dataset.path=none.jsonl", r"HERE/none\.jsonl: the file is empty", made("none.jsonl")),
        Case("train dataset=text dataset.path=none.parquet", r"HERE/none\.parquet: the file is empty",
             made("none.parquet")),
        Case("train dataset=text dataset.path=cache", r"dataset\.path: HERE/cache is a folder without text; name a"),
        Case("sample run=run prompts=none.txt", r"prompts: none\.txt holds no prompt; write one a line",
             made("none.txt", b"\n \r\n")),
    ],
    "file undecodable": [
        Case("train dataset=text dataset.path=bad.txt",
             r"HERE/bad\.txt: no utf-8 text at byte 5 \(ff: .*; set dataset\.encoding", made("bad.txt", b"good \xff")),
        Case("train dataset=text dataset.path=bad.csv",
             r"HERE/bad\.csv: byte 0xff at offset 10 is no utf-8; set dataset\.enc",
             made("bad.csv", b"text\ngood \xff bad\n")),
        Case("train dataset=text dataset.path=bad.gz",
             r"HERE/bad\.gz: damaged, or not compressed by gzip.*; compress it", made("bad.gz", b"no gzip")),
        Case("sample run=run prompts=bad.txt", r"prompts: bad\.txt is no UTF-8 at byte 5; save it as UTF-8",
             made("bad.txt", b"good \xff")),
    ],
    "file too short": [
        Case(f"train {OWN} model.context=4096",
             r"model\.context=4096: the train split has 1,980 tokens, where 8,192.*; lower model"),
        Case(f"train {OWN} model.context=256",
             r"model\.context=256: the validation split has 220 tokens, where 257.*; lower"),
        Case(f"train {OWN} model.context=16 eval_tokens=16",
             r"eval_tokens: 16 do not fill one window.*; take 17 or more"),
    ],
    "unknown key": [
        Case("train model.n_layers=2", r"model\.n_layers: there is no such setting; did you mean model\.n_layer\?"),
        Case("train optimizer.rl=1", r"optimizer\.rl: there is no such setting; did you mean optimizer\.lr\?"),
        Case("train model/possition=rope", r"model/possition: there is no such choice; did you mean model/position\?"),
        Case("train tokenizer=char tokenizer.vocab_size=9",
             r"tokenizer\.vocab_size: tokenizer=char has no .*; it belongs to tok"),
        Case("sample temprature=1", r"temprature: there is no such setting; did you mean temperature\?", process=True),
        Case("train --stpes", "--stpes: there is no such flag; there are --help"),
    ],
    "unknown choice": [
        Case("train optimizer=admw", r"optimizer: there is no 'admw'; did you mean adamw\?"),
        Case("train model/attention=spda", r"model/attention: there is no 'spda'; did you mean sdpa\?"),
        Case("train experiment=nanogpt", r"experiment: there is no 'nanogpt'; did you mean nanogpt_cpu\?"),
        Case("train precision=fp8", "precision: expected 'auto', 'fp32', 'bf16' or 'fp16', got 'fp8'"),
    ],
    "unknown choice of several": [
        Case("train logger=[console,wnadb]", r"logger: there is no 'wnadb'; did you mean wandb\?", process=True),
        Case("train logger=[tensorbord]", r"logger: there is no 'tensorbord'; did you mean tensorboard\?"),
    ],
    "wrong type": [
        Case("train model.n_layer=abc", r"model\.n_layer: expected a valid integer, got 'abc'"),
        Case("train optimizer.lr=fast", r"optimizer\.lr: expected a valid number, got 'fast'"),
        Case("train model.tied=maybe", r"model\.tied: expected a valid boolean, got 'maybe'"),
        Case("train keep=null", "keep: expected a valid integer, got null"),
        Case("sample 'prompts=[one,2]'", "prompts: 2 is no text; quote it"),
    ],
    "out of range": [
        Case("train model.dropout=1", r"model\.dropout: expected less than 1, got 1"),
        Case("train keep=0", "keep: expected greater than 0, got 0"),
        Case("train save_every=0", "save_every: expected a number of updates, as 100, or a time, as 10min; got 0"),
        Case("train optimizer.lr=nan", r"optimizer\.lr: expected a finite number, got nan"),
        Case("train model.d_model=1000000 model.n_head=1",
             r"model: weights, .* take [\d,.]+ GB, this cpu has .*; take fewer"),
        Case("sample num_samples=0", "num_samples: expected greater than or equal to 1, got 0"),
    ],
    "two settings that contradict": [
        Case("sample run=run prompt=a 'prompts=[b,c]'", "prompt and prompts are both given; leave one of them out"),
        Case("train resume=run init=run", "init: resume=run goes on in that run's own folder.*; leave it out"),
        Case("train resume=run hydra.run.dir=new",
             r"hydra\.run\.dir: resume=run goes on in that run's own.*; leave it out"),
        Case(f"train {OWN} dataset.validation_path=text.txt",
             r"dataset\.validation_path: HERE/text\.txt is in dataset\.path too; take"),
        Case("train dataset=hub dataset.path=a/b dataset.validation_split=train",
             "dataset: split and validation_split are.*; set"),
        Case("train seed=1,2", "seed=1,2: takes one value; add -m to run each"),
        Case("train hydra.sweep.dir=x", r"hydra\.sweep\.dir: only a sweep has such a folder; add -m"),
    ],
    "sizes that do not divide": [
        Case("train model.d_model=100 model.n_head=3",
             r"model\.d_model: 100 is not divisible by n_head 3; take a multiple"),
        Case("train model.n_head=4 model.d_model=64 model.n_kv_head=3",
             r"model\.n_kv_head: n_head 4 is not div.*; take a divisor"),
        Case("train batch_size=8 accumulate=3",
             "accumulate: batch_size 8 is not divisible by accumulate 3; take a divisor"),
    ],
    "illegal pair of variants": [
        Case("train model/position=rope model.d_model=9 model.n_head=3",
             r"model\.head_dim: rotary .*, 3 is odd; take .* another"),
        Case("train model/position=sinusoidal model.d_model=9 model.n_head=3",
             r"model\.d_model: sinusoidal .*, 9 is odd; take"),
        Case(f"train {OWN} model.vocab_size=5", r"model\.vocab_size: 5 is less than the tokenizer's 19; take null or"),
    ],
    "device that is not there": [
        Case("train device=cuda:99",
             "device: cuda:99 is not on this machine, which has .*cpu; take one of these, or auto"),
        Case("train device=tpu", "device: 'tpu' is none of auto, cuda, cuda:1, mps, cpu"),
        Case("sample run=run device=cuda:99",
             "device: cuda:99 is not on this machine, which has .*cpu; take one of these"),
    ],
    "precision that it lacks": [
        Case("train device=cpu precision=fp16",
             "precision: fp16 needs a cuda device, this is cpu; take bf16, fp32 or auto"),
        Case("sample run=run device=cpu precision=fp16", "precision: fp16 needs a cuda device, this is cpu; take bf16"),
    ],
    "run folder missing": [
        Case("sample run=not", f"run: not is not there; {NAME}, or latest"),
        Case("train resume=not", f"resume: not is not there; {NAME}"),
        Case("train init=not", f"init: not is not there; {NAME}, or latest"),
        Case("train resume=text.txt", rf"resume: text\.txt is no folder; {NAME}"),
        Case("sample", "run: no run in HERE/runs holds a checkpoint yet; train one first"),
        Case("train init=latest", "init: no run in HERE/runs holds a checkpoint yet; train one first"),
        Case("train resume=", "resume: expected the folder of a run, got nothing; name one, or leave it out"),
        Case("train init=", "init: expected the folder of a run, got nothing; name one, or leave it out"),
    ],
    "run folder empty": [
        Case("sample run=cache", f"run: cache holds no checkpoint; {NAME}"),
        Case("train resume=cache", rf"resume: cache is no run's folder: it has no config\.yaml; {NAME}"),
        Case("train init=cache", f"init: cache holds no checkpoint; {NAME}"),
        *damaged(STATE, emptied(POINT), ": a JSON file is expected there"),
    ],
    "run folder with truncated files": [
        *damaged(WEIGHTS, shortened(f"{POINT}/{WEIGHTS}")),
        *damaged(CONFIG, shortened(f"{POINT}/{CONFIG}")),
        *damaged(STATE, shortened(f"{POINT}/{STATE}")),
        *damaged(VOCABULARY, shortened(f"{POINT}/{VOCABULARY}")),
        *damaged(CHECKSUMS, shortened(f"{POINT}/{CHECKSUMS}")),
        *damaged(WEIGHTS, sealed(shortened(WEIGHTS)), " cannot be read"),
        *damaged(OPTIMIZER, shortened(f"{POINT}/{OPTIMIZER}"))[2:],
        *damaged(OPTIMIZER, sealed(shortened(OPTIMIZER)), " cannot be read")[2:],
        Case("train resume=run steps=9", r"resume: run/config\.yaml: settings are expected, .*; name another run",
             made("run/config.yaml")),
        Case("train resume=run steps=9", r"resume: \S*run/metrics\.csv: cannot be read .*; move it away",
             made("run/metrics.csv", b"\xff\n")),
        Case("train resume=run steps=9", r"resume: \S*run/metrics\.csv: these are no metrics.*; move",
             made("run/metrics.csv", b"a,b\n1,2\n")),
    ],
    "run folder with a changed weight file": damaged(WEIGHTS, flipped(f"{POINT}/{WEIGHTS}")),
    "run folder of a newer format": [
        *each(rf"\S*{POINT} has format 99, this version reads 3; update gpt", edited(STATE, "format", 99)),
        *damaged(VOCABULARY, edited(VOCABULARY, "version", 99), ": format version 99, this program reads version 1"),
        Case("train resume=run", r"resume: run/config\.yaml: sede: there is no such setting; did you mean seed\?",
             replaced("run/config.yaml", "seed:", "sede:")),
    ],
    "run folder made to run code": [
        *damaged(WEIGHTS, pickled(WEIGHTS), " cannot be read"),
        *damaged(OPTIMIZER, pickled(OPTIMIZER), " cannot be read")[2:],
        *damaged(CONFIG, edited(CONFIG, "model._target_", "os.system"), r": model\._target_: there is", resume=False),
        *damaged(CONFIG, edited(CONFIG, "model.attention.name", "../os"), r": model\.attention: there is no '\.\./os'",
                 resume=False),
        *damaged(VOCABULARY, edited(VOCABULARY, "name", "os"), ": no tokenizer named 'os'; there are bpe, byte"),
        *damaged(WEIGHTS, sealed(led_out)),
        *damaged("../../../outside", leads_out_by_name),
        Case("train resume=run", r"resume: run/config\.yaml: this is no YAML of settings, .*; name another run",
             made("run/config.yaml", b"a: !!python/object/apply:os.system ['touch harm']\n")),
        Case("train resume=run", r"resume: run/config\.yaml: optimizer\._target_: there is no such",
             replaced("run/config.yaml", "  name: muon", "  name: muon\n  _target_: os.system")),
        Case("train resume=run", r"resume: run/config\.yaml: optimizer: there is no '\.\./os'; there are adamw, muon",
             replaced("run/config.yaml", "name: muon", "name: ../os")),
        Case("train resume=run", r"resume: run/config\.yaml: this is no YAML of settings, .*; name another run",
             made("run/config.yaml", BOMB.encode())),
    ],
    "tokenizer that does not fit the weights": each(
        rf"the tokenizer in \S*{POINT} has 257 tokens, the weights have 19: they do not belong together; remove this",
        sealed(lambda point: ByteConfig().build(lambda split: iter(())).save(point)),
    ),
    "resume with a changed setting": [
        Case("train resume=run seed=2", f"resume: seed is 1337 in run, and 2 here{KEEPS}", process=True),
        Case("train resume=run model.n_layer=2", rf"resume: model\.n_layer is 1 in run, and 2 here{KEEPS}"),
        Case("train resume=run optimizer=adamw", rf"resume: optimizer\.name is 'muon' in run, and 'adamw' here{KEEPS}"),
        Case("train resume=run batch_size=16", f"resume: batch_size is 8 in run, and 16 here{KEEPS}"),
        Case("train resume=run dataset=builtin", rf"resume: dataset\.name is 'text' in run, and 'builtin' here{KEEPS}"),
        Case("train resume=run steps=9", "resume: the text, .* has changed since this run was left; put it back, or",
             made("text.txt", TEXT.encode() * 2)),
    ],
    "resume of what cannot go on": [
        Case("train resume=run",
             "resume: this run has done 4 updates and is at its end, steps=4; to train on, give more steps"),
        Case("train resume=run steps=9", "resume: HERE/run: another process trains in it; wait, end it, or",
             lambda here: hold(here / "run")),
        Case("train resume=run steps=9", "resume: HERE/run/checkpoints is no folder; name another run",
             lambda here: [shutil.rmtree(here / "run/checkpoints"), made("run/checkpoints")(here)]),
    ],
    "init that does not fit": [
        Case("train init=run dataset=text dataset.path=text.txt tokenizer=byte",
             r"init: tokenizer\.name is 'char' in run, .*; leave it out"),
        Case(f"train {OWN} init=run model.n_layer=2",
             rf"init: the weights in \S*{WEIGHTS} do not .*, blocks\.1.*; give the model the sizes"),
        Case(f"train {OWN} init=run model.d_model=16",
             rf"init: the weights in \S*{WEIGHTS} do not .*: \(4,\) and \(8,\); give the"),
        Case("train init=run dataset=text dataset.path=new.txt",
             "text: '日' .* at character 0 is none of the 19 .*; unknown=skip", made("new.txt", "日本".encode() * 600)),
    ],
    "unknown characters in a prompt": [
        Case("sample run=run prompt=私は",
             r"prompt: '私' \(U\+79C1 .* at character 0 is none of the 19 .*; unknown=skip leaves", process=True),
        Case("sample run=run \"prompts=['To','be~']\"",
             r"prompt: '~' \(U\+007E .* at character 2 is none of the 19 .*; unknown=skip"),
        Case("sample run=run prompt=私 unknown=skip",
             "prompt: nothing that the tokenizer knows is in it.*; give a prompt"),
    ],
    "prompt longer than the context": [
        Case(f"sample run=run prompt={'to' * 9} overflow=error",
             "overflow=error: prompt 1 of 1, of 18 tokens, and .* context of 16; shorten"),
        Case("sample run=run prompt=to max_new_tokens=15 overflow=error",
             "overflow=error: prompt 1 of 1, of 2 .*=15 exceed .*; shorten"),
    ],
    "generation of nothing": [
        Case("sample run=run max_new_tokens=0", "max_new_tokens: expected greater than or equal to 1, got 0"),
        Case("sample run=run top_p=0", "top_p: expected greater than 0, got 0"),
    ],
    "no network": [
        Case(f"train {OWN} tokenizer=named".replace("tokenizer=char ", ""),
             r"tokenizer\.encoding: gpt2 could not be fetched .*; set TIKTOKEN_"),
        Case("train dataset=tiny_shakespeare",
             r"https://\S*: cannot be reached .*; check the network, or use text that is on this"),
        Case("train dataset=hub dataset.path=https://host/a.parquet",
             "https://host/a.parquet: cannot be reached .*; check the network"),
        Case("train dataset=hub dataset.path=user/name", "user/name: cannot be reached .*; check the network",
             process=True),
    ],
    "sweep of which nothing can run": [
        Case("train -m steps=0,-1", "steps: expected greater than 0, got 0; none of the other jobs can run either"),
        Case("train -m optimizer=admw,muno",
             r"optimizer: there is no 'admw'; did you mean adamw\?.*; none of the other jobs"),
        Case("train -m seed=1,2 hydra.run.dir=x",
             r"hydra\.run\.dir: each job of a sweep has a folder .* named by hydra\.sweep"),
        Case("train -m seed=1,2 hydra.sweep.dir=text.txt", "text.txt is there already, .*: name a new one"),
    ],
    "budget without a unit": [
        Case("train budget=5", "budget: '5' is no time above 0; write it like 90s, 5min or 1.5h"),
        Case("train budget=5m", "budget: '5m' is no time above 0; write it like 90s"),
        Case("train budget=0s", "budget: '0s' is no time above 0; write it like 90s"),
    ],
    "place that cannot be written": [
        Case(f"train {TINY} hydra.run.dir=text.txt/new",
             r"hydra\.run\.dir: text\.txt/new: text\.txt is no folder that .*; name another"),
        Case(f"train {TINY} hydra.run.dir=run", "run is there already, .*: name a new one .*, or .* resume=run"),
        Case(f"train {TINY} hydra.run.dir=", r"hydra\.run\.dir: expected a folder, got nothing"),
        Case(f"train {TINY}", r"hydra\.run\.dir: HERE/runs: HERE/runs is no folder .*; name another", made("runs")),
        Case(f"train {TINY}", "HERE/data: prepared tokens cannot be kept there: .*; have it writable",
             lambda here: [(here / "data").rmdir(), made("data")(here)]),
    ],
}  # fmt: skip


def load_script(name: str):
    spec = importlib.util.spec_from_file_location(f"bad_input_{name}", ROOT / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


TRAIN, SAMPLE = load_script("train"), load_script("sample")


def run_here(typed: str) -> int:
    """A script's exit code, run in this process."""
    script, *arguments = shlex.split(typed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"{script}.py", *arguments])
        try:
            if script == "train":
                cli.main("train", TrainSettings, TRAIN.train, claim=runs.claim_folder)
            else:
                cli.main("sample", SampleSettings, SAMPLE.sample)
        except SystemExit as ended:
            return ended.code
    return 0


def run_aside(typed: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """A script, run in a process of its own."""
    script, *arguments = shlex.split(typed)
    env = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONPATH": str(checkout),
        "PYTHONPYCACHEPREFIX": str(checkout.parent / "bytes"),
    }
    command = [sys.executable, checkout / f"{script}.py", *arguments]
    return subprocess.run(command, env=env, capture_output=True, encoding="utf-8", timeout=120)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a run that was trained in it."""
    here = tmp_path_factory.mktemp("trained")
    (here / "text.txt").write_text(TEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setattr(TRAIN, "ROOT", here)
        assert run_here(f"train {TINY} hydra.run.dir=run") == 0
    shutil.rmtree(here / "data")
    for name in ("data", "cache"):
        (here / name).mkdir()
    return here


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of all that the scripts need."""
    folder = tmp_path_factory.mktemp("copy") / "checkout"
    for name in ("gpt", "configs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("train.py", "sample.py"):
        shutil.copy(ROOT / name, folder)
    (folder / "data").mkdir()
    return folder


@pytest.fixture
def here(trained, tmp_path, monkeypatch):
    """A copy of the folder of `trained`, which is the working directory and stands for the checkout."""
    here = tmp_path / "here"
    shutil.copytree(trained, here)
    replaced("run/config.yaml", str(trained), str(here))(here)
    monkeypatch.chdir(here)
    monkeypatch.setattr(TRAIN, "ROOT", here)
    monkeypatch.setattr(hub, "DOWNLOADS", here / "data" / "downloads")
    for module in (run, run_folder, runs):
        monkeypatch.setattr(module, "RUNS", here / "runs")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**NOWHERE, "TIKTOKEN_CACHE_DIR": str(here / "cache"), "HF_HOME": str(tmp_path / "hf")}.items():
        monkeypatch.setenv(name, value)
    return here


def content(*folders: Path) -> dict[Path, object]:
    """All that is in the folders."""
    found: dict[Path, object] = {}
    for path in (path for folder in folders for path in folder.rglob("*")):
        found[path] = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else "other"
    return found


ALL = [pytest.param(case, id=f"{kind}: {case.typed}") for kind, cases in CASES.items() for case in cases]


@pytest.mark.parametrize("case", ALL)
def test_it_is_told_in_one_line_and_leaves_nothing(case, here, checkout, capfd):
    descriptor = case.arrange(here)
    before = content(here, checkout)
    if case.process:
        ended = run_aside(case.typed, checkout)
        code, out, err = ended.returncode, ended.stdout, ended.stderr
    else:
        code, (out, err) = run_here(case.typed), capfd.readouterr()
    if isinstance(descriptor, int):
        os.close(descriptor)
    lines = err.replace(str(here), "HERE").splitlines()
    assert len(lines) == 1, err
    assert re.match(f"error: {case.told}", lines[0]), lines[0]
    assert (code, out) == (2, "")
    assert content(here, checkout) == before, "something was left behind"


def test_there_are_several_of_each_kind():
    assert all(len(cases) >= 2 for cases in CASES.values())
