"""Shared by all tests."""

import os

import torch


def pytest_configure() -> None:
    """One thread a process, of the tests and of what they start: pytest-xdist runs a process for each core."""
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
