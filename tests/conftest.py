"""Shared by all tests."""

from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
CORPORA = ROOT.parent / "shared" / "corpora"


def pytest_configure() -> None:
    """One thread a test process: pytest-xdist runs as many processes as there are cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Real texts that lie beside the checkout, and are no part of it."""
    if not CORPORA.is_dir():
        pytest.skip(f"needs the corpora in {CORPORA}")
    return CORPORA
