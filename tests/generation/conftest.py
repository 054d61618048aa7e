from itertools import product

import pytest
import torch

from gpt.config import UserError, parse, variant_names
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

VOCAB = 29


def variants():
    """Every attention x position that goes together."""
    for attention, position in product(variant_names("gpt.model.attention"), variant_names("gpt.model.position")):
        try:
            with torch.device("meta"):
                GPT(configure(attention, position))
        except UserError:
            continue
        yield pytest.param((attention, position), id=f"{attention}-{position}")


def configure(attention, position, context=16, n_layer=2):
    return parse(
        GPTConfig,
        {
            "vocab_size": VOCAB,
            "context": context,
            "n_layer": n_layer,
            "n_head": 4,
            "n_kv_head": 2,
            "d_model": 32,
            "tied": False,  # a tied random model repeats its last token
            "scale_embedding": True,
            "init_std": 0.3,  # far from uniform attention, so that a token out of place is seen
            "attention": {"name": attention},
            "position": {"name": position},
        },
    )


@pytest.fixture(scope="session")
def build_model():
    def build(variant=("sdpa", "rope"), **sizes):
        torch.manual_seed(0)
        return GPT(configure(*variant, **sizes)).eval()

    return build


def pytest_generate_tests(metafunc):
    if "variant" in metafunc.fixturenames:
        metafunc.parametrize("variant", list(variants()))
