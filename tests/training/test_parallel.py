"""Several processes, which torchrun starts, train what one does; any number of them goes on with it."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file

from gpt.config import ROOT
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.run_folder import read_settings

TINY = [
    "tokenizer=byte", "model.n_layer=2", "model.n_head=2", "model.n_kv_head=1", "model.d_model=16", "model.context=16",
    "dataset.years=[1790,1800]", "batch_size=8", "eval_tokens=500", "precision=fp32", "device=cpu", "logger=[]",
    "compile=off",
]  # fmt: skip


def command(processes, *arguments):
    launcher = [
        "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}",
        "--signals-to-handle=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1",
    ] if processes else []  # fmt: skip
    return [sys.executable, *launcher, str(ROOT / "train.py"), *arguments]


@contextmanager
def started(processes, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command(processes, *arguments), **pipes, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def train(processes, *arguments, code=0):
    """Both outputs of a training by so many processes; of 0, by one without torchrun."""
    with started(processes, *arguments) as process:
        out, error = process.communicate(timeout=300)
    assert process.returncode == code, error
    return out, error


def new(processes, folder, *arguments, code=0):
    # AdamW's rounding does not grow, as that of Muon's orthogonalizing in bf16 does: losses compare to 1e-5
    adamw = [] if any(argument.startswith("optimizer=") for argument in arguments) else ["optimizer=adamw"]
    return train(processes, *TINY, *adamw, *arguments, f"hydra.run.dir={folder}", code=code)


def rows(folder):
    try:
        with (folder / "metrics.csv").open(newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def curve(folder, *names):
    return [float(row[name]) for name in names or ("loss", "validation_loss") for row in rows(folder) if row[name]]


def weights(folder):
    return load_file(sorted((folder / "checkpoints").iterdir())[-1] / "model.safetensors")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process trains, with accumulation 4."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    new(0, folder, "steps=50", "accumulate=4", "eval_every=25")
    return folder


@pytest.mark.parametrize("processes, accumulate, parallel", [(2, 2, "ddp"), (4, 1, "ddp"), (2, 2, "fsdp")])
def test_several_processes_train_what_one_does(alone, tmp_path, processes, accumulate, parallel):
    """The 257 rows of the embedding are not shared out evenly."""
    many = [f"accumulate={accumulate}", f"parallel={parallel}", "eval_every=25"]
    out, _ = new(processes, tmp_path / "run", "steps=50", *many)
    assert len(curve(alone)) == 5 + 2
    assert curve(tmp_path / "run") == pytest.approx(curve(alone), abs=1e-5)
    assert out.count("A sample:") == 1, "one process prints"
    assert re.fullmatch(r"validation loss \d\.\d{4}", out.splitlines()[-1])
    assert weights(tmp_path / "run").keys() == weights(alone).keys()
    for name, tensor in weights(tmp_path / "run").items():
        torch.testing.assert_close(tensor, weights(alone)[name], atol=1e-4, rtol=0, msg=name)


def test_muon_shared_out_is_muon_but_for_rounding(tmp_path):
    """Newton-Schulz steps enlarge rounding, by more than AdamW does. What is frozen stays the same to the bit."""
    frozen = "freeze=[blocks.0.*,embedding.*]"
    for parallel in ("ddp", "fsdp"):
        new(2, tmp_path / parallel, "steps=20", "optimizer=muon", f"parallel={parallel}", "eval_every=20", frozen)
    new(0, tmp_path / "seed", "steps=20", "optimizer=muon", "eval_every=20", "seed=1", frozen)
    torch.manual_seed(1337)
    begun = GPT(GPTConfig(**read_settings(tmp_path / "ddp")["model"])).state_dict()
    for parallel in ("ddp", "fsdp"):
        kept = {name for name, tensor in weights(tmp_path / parallel).items() if torch.equal(tensor, begun[name])}
        assert kept == {name for name in begun if name.startswith(("blocks.0.", "embedding."))}
    (ddp,), (fsdp,), (other,) = (curve(tmp_path / name, "validation_loss") for name in ("ddp", "fsdp", "seed"))
    assert abs(ddp - fsdp) < abs(ddp - other) / 2


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Runs that two processes left after step 20 of 50, copied and shared out."""
    folders = {}
    for parallel in ("ddp", "fsdp"):
        folder = folders[parallel] = tmp_path_factory.mktemp("left") / parallel
        new(2, folder, "steps=50", "accumulate=2", "eval_every=25", "save_every=20", f"parallel={parallel}", "keep=9")
        for point in ("step_00000025", "step_00000040", "step_00000050"):
            shutil.rmtree(folder / "checkpoints" / point)
    return folders


@pytest.mark.parametrize("parallel, processes", [("ddp", 4), ("fsdp", 0), ("fsdp", 2)])
def test_a_run_goes_on_in_another_number_of_processes(alone, left, tmp_path, parallel, processes):
    folder = tmp_path / "run"
    shutil.copytree(left[parallel], folder)
    out, _ = train(processes, f"resume={folder}", f"accumulate={4 // max(1, processes)}", "logger=[console]")
    assert f"resumed   {folder} after step 20, trained on cpu in fp32 so far" in out
    assert curve(folder) == pytest.approx(curve(alone), abs=1e-5)


def test_where_one_process_is_killed_the_other_ends_and_the_run_goes_on(tmp_path):
    folder = tmp_path / "run"
    with started(2, *TINY, "steps=100000", "eval_every=100000", "save_every=20", f"hydra.run.dir={folder}") as process:
        wait_for_steps(folder, 30, process)
        children = workers(process.pid)
        assert len(children) == 2
        os.kill(children[1], signal.SIGKILL)
        struck = time.monotonic()
        assert process.wait(60) != 0
    assert time.monotonic() - struck < 60
    assert not any(is_alive(pid) for pid in children)
    last = max(int(point.name.removeprefix("step_")) for point in (folder / "checkpoints").glob("step_*"))
    assert last >= 20
    train(0, f"resume={folder}", f"steps={last + 10}")
    train(4, f"resume={folder}", f"steps={last + 20}")
    assert [int(row["step"]) for row in rows(folder) if row["loss"]] == list(range(10, last + 21, 10))


@pytest.mark.parametrize("number, to_all", [(signal.SIGINT, True), (signal.SIGUSR1, False)])
def test_a_signal_to_torchrun_saves(tmp_path, number, to_all):
    """Ctrl-C in a terminal reaches all processes, and torchrun hands it on once more."""
    folder = tmp_path / "run"
    long = ["steps=100000", "eval_every=100000", "save_every=100000"]
    with started(2, *TINY, *long, f"hydra.run.dir={folder}") as process:
        wait_for_steps(folder, 10, process)
        (os.killpg if to_all else os.kill)(process.pid, number)
        _, error = process.communicate(timeout=60)
    (point,) = (folder / "checkpoints").iterdir()
    assert error.count(f"interrupted after step {int(point.name.removeprefix('step_')):,} and saved") == 1


def workers(launcher):
    """The processes that torchrun started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(launcher)], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_steps(folder, number, process):
    deadline = time.monotonic() + 120
    while not any(row["loss"] and int(row["step"]) >= number for row in rows(folder)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_mistake_is_told_once(tmp_path):
    _, error = new(2, tmp_path / "run", "batch_size=7", code=1)
    lines = [line for line in error.splitlines() if line.startswith("error: ")]
    told = "batch_size: 7 sequences cannot be shared out evenly over 2 processes; start 1, 7, or take a multiple of 2"
    assert lines == [f"error: {told}"]
    assert not (tmp_path / "run").exists()


def test_a_sweep_is_refused(tmp_path):
    _, error = train(2, "-m", "seed=1,2", code=1)
    (line,) = (line for line in error.splitlines() if line.startswith("error: "))
    assert (
        line == "error: -m: torchrun starts the processes of one run, and a sweep has many; start it without torchrun"
    )


@pytest.fixture
def two_nodes():
    """Two network namespaces joined by a cable, as two machines would be: commands to run something in each."""
    names, addresses = ("gpt-node-0", "gpt-node-1"), ("10.77.7.1", "10.77.7.2")
    if os.name != "posix" or os.geteuid() or not shutil.which("ip"):
        pytest.skip("network namespaces need Linux's ip and root")
    made = [["ip", "netns", "add", name] for name in names]
    made.append(["ip", "link", "add", "cable0", "netns", names[0], "type", "veth", "peer", "cable1", "netns", names[1]])
    for i, name in enumerate(names):
        inside = ["ip", "-n", name]
        made.append([*inside, "address", "add", f"{addresses[i]}/24", "dev", f"cable{i}"])
        made += [[*inside, "link", "set", device, "up"] for device in (f"cable{i}", "lo")]
    try:
        if any(subprocess.run(step, capture_output=True, check=False).returncode for step in made):
            pytest.skip("network namespaces cannot be made here")
        yield [["ip", "netns", "exec", name, "env", f"GLOO_SOCKET_IFNAME=cable{i}"] for i, name in enumerate(names)]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def test_two_nodes_meet(two_nodes, alone, tmp_path):
    folder = tmp_path / "run"
    launcher = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc_per_node=1", "--rdzv_backend=c10d",
        "--rdzv_endpoint=10.77.7.1:29577", "--rdzv_id=nodes", str(ROOT / "train.py"),
    ]  # fmt: skip
    arguments = [
        *TINY, "optimizer=adamw", "steps=50", "accumulate=2", "eval_every=25", f"hydra.run.dir={folder}",
        "logger=[console]",
    ]  # fmt: skip
    # By their names, which both have from one machine, they could not tell which of them is the host.
    local = [[f"--local_addr=10.77.7.{i + 1}", f"--rdzv_conf=is_host={i == 0}"] for i in range(2)]
    nodes = [
        subprocess.Popen(
            [*inside, *launcher[:3], *address, *launcher[3:], *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for inside, address in zip(two_nodes, local, strict=True)
    ]  # fmt: skip
    try:
        told = [node.communicate(timeout=120) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], told
    assert curve(folder) == pytest.approx(curve(alone), abs=1e-5)
    assert sum("validation loss" in out for out, _ in told) == 1
