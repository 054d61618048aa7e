"""train.py and sample.py as a user runs them: real processes, from another directory."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape

import pytest

import gpt
from gpt.config import ROOT

TINY = [
    "tokenizer=byte", "model.n_layer=1", "model.n_head=2", "model.d_model=16", "model.context=32",
    "dataset.years=[1790,1800]", "steps=30", "batch_size=8", "eval_every=20",
    "compile=off", "precision=fp32", "device=cpu",
]  # fmt: skip


def script(name, *arguments, cwd, **more):
    command = [sys.executable, str(ROOT / name), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=300, **more)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A tiny run, and what training it printed."""
    folder = tmp_path_factory.mktemp("trained")
    process = script("train.py", *TINY, "hydra.run.dir=mine", "accumulate=2", cwd=folder)
    assert process.returncode == 0, process.stderr
    return folder / "mine", process


def test_training_tells_what_it_does_and_what_came_of_it(trained):
    _, process = trained
    out = process.stdout
    for label in ("model", "data", "training", "device", "cost"):
        assert re.search(rf"^{label}\s", out, re.M), label
    assert "GFLOP" in out
    assert "fp32: as set" in out
    assert re.search(r"step 20: validation loss \d\.\d{4} \(\d\.\d{4} bits per byte\)", out)
    assert "A sample" in out
    assert re.search(r"python \S*sample.py run=mine", out)
    assert re.fullmatch(r"validation loss \d+\.\d{4}", out.splitlines()[-1])
    assert "Traceback" not in process.stderr


def test_a_run_leaves_its_folder_and_nothing_else(trained):
    folder, _ = trained
    assert {p.name for p in folder.parent.iterdir()} == {"mine"}
    assert {p.name for p in folder.iterdir()} == {
        "config.yaml", "metrics.csv", "samples.jsonl", "summary.json", "report.html", "checkpoints",
    }  # fmt: skip
    assert "step_00000030" in {p.name for p in (folder / "checkpoints").iterdir()}


def test_a_run_leaves_its_report(trained):
    """With what it wrote, whose last text is the one that is printed."""
    folder, process = trained
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert samples[-1]["step"] == 30
    assert samples[-1]["text"].strip() in process.stdout
    assert "Report:        mine/report.html\n" in process.stdout
    page = unescape((folder / "report.html").read_text(encoding="utf-8"))
    assert "<dt>status</dt><dd>finished</dd>" in page
    assert samples[-1]["text"] in page
    assert "python train.py tokenizer=byte device=cpu" in page
    assert "<dt>machine</dt>" in page
    assert process.stdout.splitlines()[-1].removeprefix("validation loss ") in page


def test_metrics_are_whole(trained):
    with (trained[0] / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["step"], bool(r["loss"]), bool(r["validation_loss"])) for r in rows] == [
        ("10", True, False), ("20", True, False), ("20", False, True), ("30", True, False), ("30", False, True),
    ]  # fmt: skip
    losses = [float(r["loss"]) for r in rows if r["loss"]]
    assert losses[0] > losses[-1]
    assert int(rows[-1]["tokens"]) == 30 * 8 * 32
    assert float(rows[-2]["lr"]) == 0.0, "the linear schedule has decayed"


def test_the_last_line_is_the_loss_of_the_last_weights(trained):
    folder, process = trained
    with (folder / "metrics.csv").open(newline="") as file:
        last = list(csv.DictReader(file))[-1]
    assert process.stdout.splitlines()[-1] == f"validation loss {float(last['validation_loss']):.4f}"


def test_the_same_seed_gives_the_same_losses(trained, tmp_path):
    _, first = trained
    same = script("train.py", *TINY, "accumulate=2", "hydra.run.dir=again", cwd=tmp_path)
    assert same.stdout.splitlines()[-1] == first.stdout.splitlines()[-1]
    other = script("train.py", *TINY, "hydra.run.dir=other", "seed=1", "logger=[]", cwd=tmp_path)
    assert other.returncode == 0, other.stderr
    assert other.stdout.splitlines()[-1] != first.stdout.splitlines()[-1]
    assert "cost" not in other.stdout, "no logger, no table"


def test_a_folder_is_not_overwritten(trained):
    folder, _ = trained
    process = script("train.py", *TINY, "hydra.run.dir=mine", cwd=folder.parent)
    assert process.returncode == 2
    assert re.fullmatch(r"error: .*is there already.*\n", process.stderr)


def test_a_budget_replaces_steps(tmp_path):
    process = script(
        "train.py",
        *TINY,
        "steps=1000000",
        "budget=3s",
        "hydra.run.dir=b",
        "dataset.validation_every=0",
        cwd=tmp_path,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == "validation loss n/a"
    assert "not evaluated" in script("sample.py", "run=b", "max_new_tokens=5", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    "prompt",
    ["What's up, doc? (yes=no)", "私は機械学習が大好きです", "🙂", "${HOME}", "007", "a,b", "x=1", "true"],
)
def test_a_prompt_is_literal(trained, prompt):
    folder, _ = trained
    process = script("sample.py", f"run={folder}", f"prompt={prompt}", "max_new_tokens=8", cwd=folder.parent)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(prompt)
    assert "Traceback" not in process.stderr


def test_several_prompts_and_samples(trained):
    folder, _ = trained
    process = script(
        "sample.py",
        "run=mine",
        "prompts=['The people','A']",
        "num_samples=2",
        "max_new_tokens=12",
        cwd=folder.parent,
    )
    headings = re.findall(r"^--- (\d) of 4 ---$", process.stdout, re.M)
    assert headings == ["1", "2", "3", "4"]
    assert len(re.findall(r"^The people", process.stdout, re.M)) == 2
    assert re.search(r"48 tokens in .* tokens/s", process.stderr)


def test_a_sample_is_the_same_streamed_or_not_and_in_python(trained, tmp_path):
    folder, _ = trained
    moved = shutil.copytree(folder, tmp_path / "moved")
    arguments = ["run=moved", "prompt=The", "max_new_tokens=40", "seed=3", "precision=fp32"]
    streamed = script("sample.py", *arguments, cwd=tmp_path).stdout
    assert streamed == script("sample.py", *arguments, "stream=false", cwd=tmp_path).stdout
    in_python = gpt.load(moved, precision="fp32").generate("The", max_new_tokens=40, seed=3)
    assert streamed == f"The{in_python}\n"


def test_past_the_context(trained):
    folder, _ = trained
    long = "prompt=" + "word " * 20
    process = script("sample.py", "run=mine", long, "max_new_tokens=40", "temperature=0", cwd=folder.parent)
    assert process.returncode == 0
    assert "left out" in process.stderr
    refused = script("sample.py", "run=mine", long, "overflow=error", cwd=folder.parent)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1 or refused.stderr.splitlines()[-1].startswith("error: overflow")


@pytest.mark.parametrize("name", ["train.py", "sample.py"])
def test_help_is_a_page(name, tmp_path):
    process = script(name, "--help", cwd=tmp_path)
    assert process.returncode == 0
    assert "Examples" in process.stdout
    assert "Settings" in process.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_same_in_the_c_locale(trained, tmp_path):
    folder, _ = trained
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = script("sample.py", f"run={folder}", "prompt=私", "max_new_tokens=4", cwd=tmp_path, env=environment)
    assert process.returncode == 0, process.stderr


def test_a_reader_that_goes_away_does_not_end_the_training(tmp_path):
    command = [sys.executable, str(ROOT / "train.py"), *TINY, "steps=60", "hydra.run.dir=mine"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=300)
    assert (tmp_path / "mine/checkpoints/step_00000060").is_dir()


def test_a_checkpoint_of_ones_choice_and_what_is_none(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "copied")
    (last,) = (folder / "checkpoints").glob("step_00000030")
    shutil.copytree(last, folder / "checkpoints" / "step_00000030.mine")
    shown = script("sample.py", "run=copied", "max_new_tokens=5", cwd=tmp_path)
    assert "step 30 " in shown.stderr
    (last / "state.json").write_text("{")
    refused = script("sample.py", "run=copied", cwd=tmp_path)
    assert re.fullmatch(r"error: .*state\.json: this is no JSON.*\n", refused.stderr)
    chosen = script("sample.py", f"run={last}.mine", "max_new_tokens=5", cwd=tmp_path)
    assert chosen.returncode == 0, chosen.stderr


def test_a_closed_output_and_a_path_too_long(trained, tmp_path):
    closed = f"{sys.executable} {ROOT / 'sample.py'} run={trained[0]} max_new_tokens=5 >&-"
    assert subprocess.run(closed, shell=True, capture_output=True, timeout=300).returncode == 0
    process = script("sample.py", "run=" + "x" * 300, cwd=tmp_path)
    assert process.returncode == 2
    assert re.fullmatch(r"error: .*: File name too long; .*\n", process.stderr)


def test_compiling_strictly_and_without_a_compiler(tmp_path):
    arguments = [*TINY, "steps=3", "tokenizer=byte"]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    compiled = script("train.py", *arguments, "compile=strict", "hydra.run.dir=a", cwd=tmp_path, env=environment)
    assert compiled.returncode == 0, compiled.stderr
    assert "compile on" in compiled.stdout
    environment |= {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "other"), "CXX": "/nowhere/c++"}
    eager = script("train.py", *arguments, "compile=on", "hydra.run.dir=b", cwd=tmp_path, env=environment)
    assert eager.returncode == 0, eager.stderr
    assert re.search(r"^warning: compiling failed, going on without \(.+\)$", eager.stderr, re.M)
    assert "compile off (it failed)" in eager.stdout
    refused = script("train.py", *arguments, "compile=strict", "hydra.run.dir=c", cwd=tmp_path, env=environment)
    assert refused.returncode == 1
    assert re.fullmatch(r"error: compile: strict.+\n", refused.stderr)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    "arguments, tells",
    [
        (["model.n_layr=3"], "model.n_layer"),
        (["lr=1"], "optimizer.lr"),
        (["model.n_layer=abc"], "integer"),
        (["model.d_model=33"], "not divisible"),
        (["model/position=rope", "model.n_head=1", "model.d_model=33"], "odd"),
        (["model.d_model=1000000", "model.n_head=1"], "GB"),
        (["seed=99999999999999999999999"], "seed"),
        (["model/attention=spda"], "sdpa"),
        (["logger=[console,wandbb]"], "console"),
        (["batch_size=10", "accumulate=4"], "divisible"),
        (["device=cuda:99"], "not on this machine"),
        (["precision=fp16"], "fp16 needs a cuda device"),
        (["budget=soon"], "5min"),
        (["dataset.years=[1900,1800]"], "1790"),
        (["model.context=1000000"], "context"),
        (["tokenizer.vocab_size=10", "tokenizer=bpe"], "vocab_size"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, tells, tmp_path):
    process = script("train.py", *TINY, *arguments, "hydra.run.dir=mine", cwd=tmp_path)
    assert process.returncode == 2, process.stdout + process.stderr
    assert re.fullmatch(r"error: .+\n", process.stderr), process.stderr
    assert tells in process.stderr
    assert list(tmp_path.iterdir()) == []
