"""Parameters by part."""

import pytest
import torch

from gpt.cli import compose
from gpt.cli.composition import CONFIGS, groups_in
from gpt.insight.plan.parameters import Count, by_part
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.settings import TrainSettings

GROUPS = [
    f"{group}={name}" for group, names in groups_in(CONFIGS).items() for name in names if group.split("/")[0] == "model"
]


@pytest.mark.parametrize("choice", GROUPS)
def test_the_parts_of_each_preset_and_variant_add_up(choice):
    settings, _ = compose("train", [choice], TrainSettings)
    with torch.device("meta"):
        model = settings.build_model(4096)
    parts = by_part(model)
    assert sum(count.total for count in parts.values()) == model.count_parameters()
    assert "other" not in parts


def test_gpt2_small_by_hand():
    with torch.device("meta"):
        model = compose("train", ["model=gpt2", "model.vocab_size=50257"], TrainSettings)[0].build_model(1)
    d, layers = 768, 12
    assert {part: count.total for part, count in by_part(model).items()} == {
        "embedding": 50257 * d,
        "position": 1024 * d,
        "attention": layers * (3 * d * d + 3 * d + d * d + d),
        "feedforward": layers * (4 * d * d + 4 * d + 4 * d * d + d),
        "norms": (2 * layers + 1) * 2 * d,
        "head": 0,
    }
    assert sum(count.total for count in by_part(model).values()) == 124_439_808


def test_a_head_of_its_own_and_what_is_frozen():
    config = GPTConfig(vocab_size=10, context=4, n_layer=1, n_head=1, d_model=8, tied=False)
    model = GPT(config)
    model.embedding.weight.requires_grad_(False)
    parts = by_part(model)
    assert parts["head"] == Count(80, 80)
    assert parts["embedding"] == Count(80, 0)
