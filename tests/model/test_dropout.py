import pytest
import torch

from gpt.model.dropout import Dropout, draw, dropout


def drawn(count, p, dtype=torch.float32):
    return draw(torch.randint(1 << 62, (1,)), count, p, dtype)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_of_p_is_dropped(p):
    """Of 90,000 elements; five standard deviations are below 0.0084."""
    torch.manual_seed(0)
    assert drawn(90_000, p).mean().item() == pytest.approx(1 - p, abs=0.0084)


def test_neighbours_rows_and_calls_know_nothing_of_one_another():
    """Correlations of 2^16 elements: five standard deviations are 0.02."""
    torch.manual_seed(0)
    masks = torch.stack([drawn(1 << 16, 0.5) for _ in range(3)]) * 2 - 1
    for shift in (0, 1, 2, 4, 64, 256, 4096):
        for other in masks[1:] if not shift else masks:
            assert abs((masks[0] * other.roll(shift)).mean().item()) < 0.02


def test_the_seed_decides():
    def pair(seed):
        torch.manual_seed(seed)
        return drawn(1001, 0.5), drawn(1001, 0.5)

    first, second = pair(7)
    assert not torch.equal(first, second)
    assert all(torch.equal(*same) for same in zip((first, second), pair(7), strict=True))
    assert not torch.equal(first, pair(8)[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_it_is_zeros_and_ones_in_every_type(dtype):
    m = drawn(1001, 0.5, dtype)
    assert m.dtype == dtype
    assert sorted(set(m.tolist())) == [0, 1]


def test_what_is_kept_is_divided_and_its_gradient_too():
    torch.manual_seed(0)
    x = torch.ones(3, 5, requires_grad=True)
    y = dropout(x, 0.75)
    y.sum().backward()
    assert set(y.flatten().tolist()) == {0.0, 4.0}
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("p, training", [(0.0, True), (0.5, False)])
def test_off_it_is_nothing(p, training):
    x = torch.randn(4)
    assert Dropout(p).train(training)(x) is x


def test_a_compiler_calls_it_as_it_is():
    torch.manual_seed(0)
    y = torch.compile(Dropout(0.5).train(), backend="aot_eager", fullgraph=True)(torch.ones(1000))
    torch.manual_seed(0)
    assert torch.equal(y, drawn(1000, 0.5) * 2)
