"""What the README says is so: its commands run, its map is whole, its lists are those of the code."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from gpt.cli import compose
from gpt.config import ROOT
from gpt.insight.bench.settings import BenchSettings
from gpt.insight.plan.plan import PlanSettings
from gpt.insight.studying import StudySettings
from gpt.training.settings import TrainSettings

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SMALL = [
    "steps=2",
    "eval_every=2",
    "batch_size=2",
    "accumulate=1",
    "compile=off",
    "model.n_layer=1",
    "model.context=32",
]
COMPOSED_ONLY = ("device=cuda", "--help", "--cfg", "dataset=tiny_shakespeare", "dataset=hub")
"""What needs a GPU or a download, or trains nothing."""


JAPANESE = (ROOT / "README.ja.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


LINES = [line for block in blocks("sh") for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("python ")]
LAUNCHES = [shlex.split(line, comments=True)[1:] for line in LINES if line.startswith("torchrun")]
TRAININGS = [shlex.split(line, comments=True)[2:] for line in COMMANDS if line.startswith("python train.py")]
LOOKS = [shlex.split(line, comments=True)[2:] for line in COMMANDS if line.startswith("python data/prepare.py")]
VERBS = [shlex.split(line, comments=True)[3:] for line in COMMANDS if line.startswith("python -m gpt")]
EXPORTS = [arguments for arguments in VERBS if arguments[0] == "export"]
"""Made with the run, since other commands take what they make."""
SAMPLES = [shlex.split(line, comments=True)[2:] for line in COMMANDS if line.startswith("python sample.py")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what the README talks about, in which a run called `mine` was trained."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("gpt", "configs"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "data").mkdir()
    for name in ("train.py", "sample.py", "data/prepare.py", "README.md"):
        shutil.copy(ROOT / name, copy / name)
    run(copy, "train.py", *SMALL, "hydra.run.dir=runs/mine")
    for arguments in EXPORTS:
        run(copy, "-m", "gpt", *arguments)
    return copy


def run(checkout, *arguments):
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_there_are_commands():
    assert len(TRAININGS) >= 12
    assert LOOKS
    assert len(LAUNCHES) >= 3
    assert len(VERBS) >= 5
    assert len(SAMPLES) >= 4


@pytest.mark.parametrize("arguments", TRAININGS, ids=" ".join)
def test_training_commands(checkout, arguments):
    if any(word in arguments for word in COMPOSED_ONLY):
        compose("train", [a for a in arguments if not a.startswith("--")], TrainSettings)
        return
    elsewhere = [a for a in arguments if "hydra.run.dir" not in a]  # that folder has the fixture's run
    shorter = ["budget=2s"] if any(a.startswith("budget=") for a in arguments) else []
    small = ["steps=3"] if "resume=runs/mine" in arguments else [*SMALL, *shorter]
    out = run(checkout, "train.py", *elsewhere, *small)
    if "-m" in arguments:
        assert re.findall(r" (done|failed.*)$", out, re.M) == ["done"] * 2  # of both optimizers, at one size
    else:
        assert re.fullmatch(r"validation loss \d+\.\d{4}", out.splitlines()[-1])


@pytest.mark.parametrize("arguments", LAUNCHES, ids=" ".join)
def test_launching_commands(checkout, arguments):
    """Each in two processes on a CPU, of a model as small as any."""
    _, script, *settings = arguments
    own = [a for a in settings if not a.startswith(("device=", "model=", "steps="))]
    small = ["steps=5"] if "resume=runs/mine" in arguments else SMALL  # after the 3 that one process made of it
    out = run(checkout, "-m", "torch.distributed.run", "--nproc_per_node=2", script, *own, *small, "device=cpu")
    assert re.fullmatch(r"validation loss \d+\.\d{4}", out.splitlines()[-1])


@pytest.mark.parametrize("arguments", LOOKS, ids=" ".join)
def test_looking_commands(checkout, arguments):
    out = run(checkout, "data/prepare.py", *arguments)
    assert out.splitlines()[-1] == f"To train: python train.py {' '.join(arguments)}"


@pytest.mark.parametrize("arguments", SAMPLES, ids=" ".join)
def test_sampling_commands(checkout, arguments):
    out = run(checkout, "sample.py", *arguments, "max_new_tokens=20")
    for prompt in [a.removeprefix("prompt=") for a in arguments if a.startswith("prompt=")]:
        assert prompt in out


@pytest.mark.parametrize("arguments", VERBS, ids=" ".join)
def test_verbs(checkout, arguments):
    if arguments[0] == "study" and arguments[1] in ("complexity", "recall"):
        compose("study", [f"study={arguments[1]}"], StudySettings)
        return
    if arguments[0] == "plan":
        compose("plan", arguments[1:], PlanSettings)
        return
    if arguments[0] == "bench":
        compose("bench", arguments[1:], BenchSettings)
        return
    if arguments in EXPORTS:
        assert (checkout / arguments[-1].removeprefix("to=") / "model.safetensors").is_file()
        return
    if arguments[0] == "compare":  # of runs that are here
        arguments = [a for a in arguments if a != "runs/yours"]
        assert "runs/mine" in run(checkout, "-m", "gpt", *arguments)
        return
    told = [
        line for line in run(checkout, "-m", "gpt", *arguments).splitlines() if line.startswith(("picture", "open"))
    ]
    assert told
    assert all((checkout / line.split(" ", 1)[1]).is_file() for line in told)


def test_python(checkout):
    (example,) = [block for block in blocks("python") if "gpt.load" in block]
    assert len(run(checkout, "-c", example)) > 10


def test_the_variant_that_is_shown_works(checkout):
    (code,) = [block for block in blocks("python") if "class ReluConfig" in block]
    (checkout / "gpt/model/feedforward/relu.py").write_text(code, encoding="utf-8")
    (checkout / "configs/model/feedforward/relu.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    assert "relu" in run(checkout, "train.py", *SMALL, "model/feedforward=relu")
    assert "model/feedforward=relu " in run(checkout, "train.py", "--help")


def test_the_choices_are_those_of_the_code():
    listed = dict(re.findall(r"^\| `([\w/]+)` \| ((?:`\w+` ?)+) \|$", TEXT, re.M))
    folders = [folder for folder in (ROOT / "configs").rglob("*") if folder.is_dir()]
    there = {f.relative_to(ROOT / "configs").as_posix(): sorted(y.stem for y in f.glob("*.yaml")) for f in folders}
    told = {choice: re.findall(r"\w+", names) for choice, names in listed.items()}
    assert told == there, "the README's table of choices is not that of configs/"


def test_the_map_is_whole():
    section = TEXT[TEXT.index("## The map") : TEXT.index("## The choices")]
    named = set(re.findall(r"`((?:gpt|configs|data|tests)/[\w/.]*|train\.py|sample\.py)`", section))
    assert all((ROOT / name).exists() for name in named)
    folders = tuple(name for name in named if name.endswith("/") and name != "gpt/")
    for file in (ROOT / "gpt").rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        assert path in named or path.startswith(folders) or path.endswith("__init__.py"), f"{path} is not on the map"


@pytest.mark.parametrize("language", ["sh", "bash"])
def test_the_japanese_one_has_the_same_commands_in_the_same_order(language):
    ours, theirs = (
        [shlex.split(block, comments=True) for block in blocks(language, text)] for text in (TEXT, JAPANESE)
    )
    assert ours == theirs


def test_the_japanese_one_shows_the_same_output_and_python():
    assert blocks("text", JAPANESE) == blocks("text")
    (theirs,) = blocks("python", JAPANESE)
    assert ast.dump(ast.parse(theirs)) == ast.dump(ast.parse(blocks("python")[0]))


def test_the_japanese_one_links_to_files_that_are_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", JAPANESE)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []
