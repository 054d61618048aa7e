"""Peaks of work whose memory is known."""

import subprocess
import sys

import pytest
import torch

from gpt.insight.cost import memory
from gpt.insight.cost.memory import free_bytes, peak_bytes

CPU = torch.device("cpu")
MIB = 1 << 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


# In a process of its own: what other tests leave in this one moves a peak of large tensors by tens of MiB.
SCRIPT = """
import torch
from gpt.insight.cost.memory import peak_bytes

def take(*mebibytes):
    for size in mebibytes:
        torch.ones(size * 2**20 // 4)

for before in (0, 200):
    take(before, 1)
    print(peak_bytes(lambda: take(40, 64, 40), torch.device("cpu")))
"""


@linux
def test_the_peak_is_the_largest_that_was_held_at_once():
    """Held one after the other; also where more was taken before, and given back."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert [int(line) for line in done.stdout.split()] == pytest.approx([64 * MIB] * 2, abs=4 * MIB)


@linux
def test_what_was_freed_and_is_used_again_counts():
    """Small pieces stay with the C library when they are freed."""
    pieces = lambda: [torch.ones(1000) for _ in range(8000)]  # noqa: E731
    pieces()
    assert peak_bytes(pieces, CPU) > 24 * MIB


@linux
def test_work_that_takes_nothing():
    peak_bytes(lambda: None, CPU)
    assert peak_bytes(lambda: None, CPU) < MIB


@linux
def test_what_is_free_is_less_than_there_is():
    assert 0 < free_bytes(CPU) < 1 << 50


def test_where_the_system_does_not_tell_nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "PROC", tmp_path)
    called = []
    assert peak_bytes(lambda: called.append(1), CPU) is None
    assert free_bytes(CPU) is None
    assert peak_bytes(lambda: called.append(1), torch.device("mps")) is None
