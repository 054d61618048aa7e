"""Several processes, which torchrun starts, train what one does; any number of them goes on with it."""

import csv
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file

from gpt.config import ROOT

TINY = [
    "tokenizer=byte", "model.n_layer=2", "model.n_head=2", "model.n_kv_head=1", "model.d_model=16", "model.context=16",
    "dataset.years=[1790,1800]", "batch_size=8", "eval_tokens=500", "precision=fp32", "device=cpu", "logger=[]",
    "compile=off",
]  # fmt: skip


def command(processes, *arguments):
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"] if processes else []
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


def new(processes, folder, *arguments):
    return train(processes, *TINY, *arguments, f"hydra.run.dir={folder}")


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


@pytest.mark.parametrize(
    "processes, accumulate, parallel", [(2, 2, "ddp"), (4, 1, "ddp"), (2, 2, "fsdp"), (3, 1, "fsdp")]
)
def test_several_processes_train_what_one_does(alone, tmp_path, processes, accumulate, parallel):
    sizes = ["batch_size=6"] if processes == 3 else []
    if sizes:
        alone = tmp_path / "alone"
        new(0, alone, "steps=50", "accumulate=3", "eval_every=25", *sizes)
    many = [f"accumulate={accumulate}", f"parallel={parallel}", "eval_every=25", *sizes]
    out, _ = new(processes, tmp_path / "run", "steps=50", *many)
    assert len(curve(alone)) == 5 + 2
    assert curve(tmp_path / "run") == pytest.approx(curve(alone), abs=1e-5)
    assert out.count("A sample:") == 1, "one process prints"
    assert re.fullmatch(r"validation loss \d\.\d{4}", out.splitlines()[-1])
    assert weights(tmp_path / "run").keys() == weights(alone).keys()
    for name, tensor in weights(tmp_path / "run").items():
        torch.testing.assert_close(tensor, weights(alone)[name], atol=1e-4, rtol=0, msg=name)
