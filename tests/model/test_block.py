import pytest
import torch
from torch import nn

from gpt.model.attention import Place
from gpt.model.block import Block
from gpt.model.config import GPTConfig

PLACE = Place(None, torch.zeros(1, 1, dtype=torch.int64), None, None)
"""Of one token without positions."""


def block(attention=0.0, feedforward=0.0, **settings):
    """A block whose branches add a constant each, whatever they see."""
    built = Block(
        GPTConfig(vocab_size=5, n_layer=1, n_head=1, d_model=4, bias=True, norm="layernorm", **settings), layer=0
    )
    for branch, constant in ((built.attention, attention), (built.feedforward, feedforward)):
        nn.init.zeros_(branch.output.weight)
        nn.init.constant_(branch.output.bias, constant)
    return built


def test_both_branches_are_added():
    x = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
    assert block(attention=10.0, feedforward=100.0)(x, PLACE).flatten().tolist() == [111, 112, 113, 114]


@pytest.mark.parametrize("branch", ["attention", "feedforward"])
def test_each_branch_has_dropout(branch):
    built = block(dropout=0.5, **{branch: 1.0})
    x = torch.zeros(1, 1, 4).expand(100, 1, 4)
    torch.manual_seed(0)
    assert set(built.train()(x, PLACE).flatten().tolist()) == {0.0, 2.0}  # dropped, or divided by 1 - 0.5
    assert set(built.eval()(x, PLACE).flatten().tolist()) == {1.0}


def test_each_branch_reads_through_its_own_norm():
    """With a gain of 0 and a bias, what a branch sees is that bias, and what the other one sees is not."""
    torch.manual_seed(0)
    built = Block(GPTConfig(vocab_size=5, n_layer=1, n_head=1, d_model=4, bias=True, norm="layernorm"), layer=0)
    seen = []
    for branch in (built.attention, built.feedforward):
        branch.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten().tolist()))
    for norm, constant in ((built.attention_norm, 3.0), (built.feedforward_norm, 7.0)):
        nn.init.zeros_(norm.weight)
        nn.init.constant_(norm.bias, constant)
    built(torch.randn(1, 1, 4), PLACE)
    assert seen == [[3.0] * 4, [7.0] * 4]


def test_the_feedforward_sees_what_attention_added():
    built = block()
    seen = []
    built.feedforward_norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten().tolist()))
    built.attention.output.bias.data = torch.tensor([1.0, 2.0, 3.0, 4.0])
    built(torch.zeros(1, 1, 4), PLACE)
    assert seen == [[1.0, 2.0, 3.0, 4.0]]
