"""A small model, its update, and data to train on."""

import numpy as np
import pytest
import torch

from gpt.device import Precision
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.guard import Guard
from gpt.training.optimizer.adamw import AdamwConfig
from gpt.training.parallel import Spread
from gpt.training.update import Update

CPU = torch.device("cpu")


@pytest.fixture
def precision() -> Precision:
    return Precision("fp32", "as set", CPU)


@pytest.fixture
def build_update(precision):
    def build(seed: int = 0, clip: float = 1.0, lr: float = 1e-2, separator: int | None = None, **settings) -> Update:
        torch.manual_seed(seed)
        sizes = {"vocab_size": 11, "context": 8, "n_layer": 1, "n_head": 2, "d_model": 8}
        model = GPT(GPTConfig(**{**sizes, **settings}))
        guard = Guard(AdamwConfig(lr=lr).build(model), clip, torch.amp.GradScaler("cpu", enabled=False))
        return Update(Spread(model, Processes(CPU)), guard, precision, separator)

    return build


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 11, 400)
