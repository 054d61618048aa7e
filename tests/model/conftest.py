"""Small models to test with."""

import pytest
import torch

from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT


@pytest.fixture
def build():
    """A small model with weights large enough that attention is far from uniform; settings override its sizes."""

    def build(seed: int = 0, **settings) -> GPT:
        torch.manual_seed(seed)
        sizes = {"vocab_size": 50, "context": 16, "n_layer": 2, "n_head": 4, "d_model": 32, "init_std": 0.2}
        for choice in ("attention", "position", "feedforward"):
            if isinstance(settings.get(choice), str):
                settings[choice] = {"name": settings[choice]}
        return GPT(GPTConfig(**{**sizes, **settings})).eval()

    return build
