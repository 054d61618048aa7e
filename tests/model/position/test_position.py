import math

import pytest
import torch

from gpt.config import UserError, parse
from gpt.model.config import GPTConfig
from gpt.model.position.alibi import Alibi, AlibiConfig, slopes
from gpt.model.position.learned import Learned
from gpt.model.position.rope import Rope, RopeConfig
from gpt.model.position.sinusoidal import Sinusoidal, SinusoidalConfig


def test_rope_by_hand():
    rotation = Rope(head_dim=4, base=100.0).rotation(torch.tensor([[1]]))
    # pair 0 is (x[0], x[2]), turned by 1; pair 1 is (x[1], x[3]), turned by 100^(-1/2) = 0.1
    turned = rotation(torch.tensor([[[[1.0, 0.0, 0.0, 1.0]]]])).flatten().tolist()
    assert turned == pytest.approx([math.cos(1), -math.sin(0.1), math.sin(1), math.cos(0.1)], abs=1e-6)


@pytest.mark.parametrize("position", [0, 4, 6, 1020])
def test_a_factor_of_4_turns_by_a_quarter(position):
    stretched = Rope(head_dim=8, base=10000.0, factor=4.0).rotation(torch.tensor([[position]]))
    angle = [position / 4 * 10000.0 ** (-2 * i / 8) for i in range(4)]
    assert stretched.cos.flatten().tolist() == pytest.approx([math.cos(a) for a in angle], abs=1e-4)
    assert stretched.sin.flatten().tolist() == pytest.approx([math.sin(a) for a in angle], abs=1e-4)
    if position % 4 == 0:
        plain = Rope(head_dim=8, base=10000.0).rotation(torch.tensor([[position // 4]]))
        assert torch.equal(stretched.cos, plain.cos)
        assert torch.equal(stretched.sin, plain.sin)


def test_a_factor_below_1_is_refused():
    with pytest.raises(UserError, match=r"factor: expected greater than or equal to 1, got 0\.5"):
        parse(RopeConfig, {"factor": 0.5})


def test_rope_scores_depend_on_distance_alone():
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    rope = Rope(8, 10000.0)

    def score(p, s):
        return (rope.rotation(torch.tensor([[p]]))(query) * rope.rotation(torch.tensor([[s]]))(key)).sum()

    assert torch.allclose(score(3, 1), score(103, 101), atol=1e-4)
    assert not torch.allclose(score(3, 1), score(3, 2), atol=1e-2)


def test_rope_keeps_lengths_and_the_first_position():
    x = torch.randn(2, 3, 5, 8)
    turned = Rope(8, 10000.0).rotation(torch.arange(5)[None])(x)
    assert torch.allclose(turned.norm(dim=-1), x.norm(dim=-1), atol=1e-5)
    assert torch.equal(turned[:, :, 0], x[:, :, 0])


def test_sinusoidal_by_hand():
    table = Sinusoidal(d_model=4, base=10000.0).embed(torch.tensor([[0, 3]]))[0]
    assert table[0].tolist() == [0, 1, 0, 1]
    assert table[1].tolist() == pytest.approx([math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)])


def test_alibi_by_hand():
    bias = Alibi([0.5, 0.25]).bias(torch.tensor([[3]]), torch.tensor([[0, 2, 3]]))
    assert bias[0, :, 0].tolist() == [[-1.5, -0.5, 0.0], [-0.75, -0.25, 0.0]]


def test_alibi_slopes_as_published():
    assert slopes(8) == [2.0**-h for h in range(1, 9)]
    # 12 heads: the 8 of the next smaller power, then every second one of 16
    assert slopes(12)[8:] == pytest.approx([2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])


def test_the_settings_reach_the_module():
    model = GPTConfig(n_head=4, d_model=16)
    assert RopeConfig(base=100.0).build(model).rotation(torch.tensor([[1]])).sin.flatten().tolist() == pytest.approx(
        [math.sin(1), math.sin(0.1)]  # a head is 4 wide: 100^0 and 100^(-2/4)
    )
    halved = RopeConfig(base=100.0, factor=2.0).build(model).rotation(torch.tensor([[1]]))
    assert halved.sin.flatten().tolist() == pytest.approx([math.sin(0.5), math.sin(0.05)])
    table = SinusoidalConfig(base=100.0).build(model).embed(torch.tensor([[1]])).flatten()
    assert table[8].item() == pytest.approx(math.sin(0.1))  # dimension 8 of 16
    assert AlibiConfig().build(model).slopes == [2**-2, 2**-4, 2**-6, 2**-8]


@pytest.mark.parametrize("position", ["rope", "sinusoidal"])
def test_odd_widths_are_refused(build, position):
    with pytest.raises(UserError, match=r"model\..*odd"):
        build(position=position, n_head=1, d_model=5)


def test_learned_positions_are_rows_of_the_table():
    learned = Learned(context=3, d_model=1)
    learned.table.weight.data = torch.tensor([[5.0], [6.0], [7.0]])
    assert learned.embed(torch.tensor([[-1, 0, 1, 2]])).flatten().tolist() == [5, 5, 6, 7]  # padding reads row 0


def test_learned_positions_end_at_the_context(build):
    model = build(position="learned")
    with pytest.raises(ValueError, match="17 tokens exceed the 16 positions"):
        model(torch.zeros(1, 17, dtype=torch.int64))
    cache = model.build_cache(17)
    model(torch.zeros(1, 16, dtype=torch.int64), cache=cache)
    with pytest.raises(ValueError, match="17 tokens exceed"):
        model(torch.zeros(1, 1, dtype=torch.int64), cache=cache)
