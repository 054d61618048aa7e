"""Tables that a training begins with more or fewer rows of."""

from pathlib import Path

import pytest
import torch

from gpt.config import UserError
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.growth import changes, fitted, refuse_untrained, shapes_of

SMALL = {"vocab_size": 7, "context": 4, "n_layer": 1, "n_head": 2, "d_model": 8, "position": {"name": "learned"}}
HERE = Path("there")


def config(**more):
    return GPTConfig(**{**SMALL, **more})


@pytest.mark.parametrize(
    "more, told",
    [
        ({}, []),
        ({"context": 6}, ["position.table.weight has 6 rows in place of 4: the last 2 are new"]),
        ({"context": 3}, ["position.table.weight has 3 rows in place of 4: the last 1 are left out"]),
        ({"vocab_size": 1000}, ["embedding.weight has 1,000 rows in place of 7: the last 993 are new"]),
    ],
)  # fmt: skip
def test_what_becomes_of_the_rows_is_told(more, told):
    assert changes(shapes_of(config()), shapes_of(config(**more)), HERE) == told


def test_rows_that_are_new_are_not_frozen():
    found, wanted = shapes_of(config()), shapes_of(config(vocab_size=9))
    refuse_untrained(found, wanted, ["position.table.weight", "norm.weight"])
    refuse_untrained(wanted, found, ["embedding.weight"])
    with pytest.raises(UserError, match=r"^freeze: embedding\.weight begins with 2 new rows"):
        refuse_untrained(found, wanted, ["embedding.weight"])


def test_a_head_of_its_own_grows_with_the_vocabulary():
    both = changes(shapes_of(config(tied=False)), shapes_of(config(tied=False, vocab_size=9)), HERE)
    assert [line.split()[0] for line in both] == ["embedding.weight", "head.weight"]


@pytest.mark.parametrize(
    "more, named",
    [
        ({"n_layer": 2}, r"blocks\.1\.attention.*not there and \("),
        ({"d_model": 10}, r"blocks\.0\.attention\.key_norm\.weight for one: \(4,\) and \(5,\)"),
        ({"tied": False}, r"head\.weight for one: not there and \(7, 8\)"),
        ({"position": {"name": "rope"}}, r"position\.table\.weight for one: \(4, 8\) and not there"),
    ],
)  # fmt: skip
def test_another_difference_is_refused(more, named):
    with pytest.raises(UserError, match=f"run: the weights in there do not have the names and shapes .*{named}"):
        changes(shapes_of(config()), shapes_of(config(**more)), HERE)


def test_new_rows_are_as_initialised_and_old_ones_stay():
    weights, model = GPT(config()).state_dict(), GPT(config(context=6, vocab_size=5))
    own = model.position.table.weight.detach().clone()
    model.load_state_dict(fitted(weights, model))
    assert torch.equal(model.position.table.weight[:4], weights["position.table.weight"])
    assert torch.equal(model.position.table.weight[4:], own[4:])
    assert torch.equal(model.embedding.weight, weights["embedding.weight"][:5])
    assert torch.equal(model.blocks[0].attention.qkv.weight, weights["blocks.0.attention.qkv.weight"])
