import pytest
import torch

import gpt
from gpt.model.attention.reference import attention_weights


def test_weights_by_hand():
    query = torch.tensor([[[[2.0, 0.0, 0.0, 0.0]]]])
    key = torch.tensor([[[[0.0, 0, 0, 0], [torch.log(torch.tensor(3.0)), 0, 0, 0]]]])
    # scores 0 and 2 ln3 / sqrt(4) = ln 3: weights 1/4 and 3/4
    assert torch.allclose(attention_weights(query, key).flatten(), torch.tensor([0.25, 0.75]))


def test_masking_is_before_the_softmax():
    query, key = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 3, 4)
    visible = torch.tensor([[[[True, True, False]]]])
    assert attention_weights(query, key, visible).flatten().tolist() == [0.5, 0.5, 0.0]


def test_agrees_with_pytorch():
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    value = torch.randn(2, 3, 7, 4)
    mask = torch.rand(2, 1, 5, 7) < 0.7
    ours = gpt.scaled_dot_product_attention(query, key, value, mask)
    assert ours.shape == (2, 3, 5, 4)
    theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask)
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_a_row_that_sees_nothing_gives_zeros_and_finite_gradients():
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, 2, 4, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[False, False], [True, False]])
    out = gpt.scaled_dot_product_attention(query, key, value, mask)
    out.sum().backward()
    assert out[0, 0, 0].tolist() == [0.0] * 4
    assert torch.equal(out[0, 0, 1], value[0, 0, 0])
    assert all(t.grad.isfinite().all() for t in (query, key, value))
    assert query.grad[0, 0, 0].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "shapes, sizes",
    [
        (((1, 1, 2, 4), (1, 1, 3, 4), (1, 1, 5, 4)), "3 and 5"),
        (((1, 1, 2, 4), (1, 1, 3, 6), (1, 1, 3, 4)), "4 and 6"),
    ],
)
def test_sizes_that_do_not_match_are_named(shapes, sizes):
    with pytest.raises(ValueError, match=sizes):
        gpt.scaled_dot_product_attention(*(torch.zeros(shape) for shape in shapes))


def test_a_mask_must_be_boolean():
    x = torch.zeros(1, 1, 2, 4)
    with pytest.raises(TypeError, match=r"boolean.*float32"):
        gpt.scaled_dot_product_attention(x, x, x, torch.zeros(2, 2))
