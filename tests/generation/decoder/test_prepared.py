import mmap

import pytest
import torch
from torch import nn

from gpt.config import UserError
from gpt.generation.decoder import Decoder
from gpt.generation.decoder.choice import TOLERANCE
from gpt.generation.decoder.prepared import (
    Int8,
    Packed,
    Tiles,
    check_quantize,
    in_large_pages,
    int8,
    int8_tiles,
    linear,
    prepared,
)

PROMPTS = [[3, 1, 4, 1, 5], [7]]


@pytest.mark.parametrize("bias", [None, torch.tensor([10.0, -10.0])])
@pytest.mark.parametrize("layout", [linear, Packed, Tiles, Int8, int8_tiles])
def test_a_product_by_hand(layout, bias):
    """Whole numbers of which the largest in a row is 127 are exact in 8 bits, and the sums in fp32."""
    weight, x = torch.zeros(2, 16), torch.zeros(1, 1, 16)
    weight[0, :2], weight[1, 1], x[..., :2] = torch.tensor([127.0, 1.0]), -127.0, torch.tensor([2.0, 3.0])
    y = layout(weight, bias)(x)
    wanted = torch.tensor([[[257.0, -381.0]]]) + (0 if bias is None else bias)
    assert torch.allclose(y, wanted, rtol=4e-3 if layout is Int8 else 0)
    assert y.dtype == torch.float32


def test_a_row_of_zeros_stays_zero():
    assert Int8(torch.zeros(2, 16), None)(torch.ones(1, 16)).tolist() == [[0, 0]]


@pytest.mark.parametrize("width, kind", [(48, Int8), (24, nn.Linear)])
def test_widths_that_the_kernel_would_read_beyond_keep_their_weights(width, kind):
    assert isinstance(int8(torch.ones(3, width), None), kind)


@pytest.mark.parametrize("dtype, shape", [(torch.float32, (3, 4, 1, 16)), (torch.int8, (2, 1, 4, 32))])
def test_tiles_are_rows_side_by_side_and_what_is_over_is_left_out(dtype, shape):
    """Row i of 33 is i, 10, 0, -i; of int8 the four columns are neighbours."""
    rows = torch.arange(33)
    layer = Tiles(torch.stack([rows, 0 * rows + 10, 0 * rows, -rows], dim=1).to(dtype), None)
    assert layer.tiles.shape == shape
    assert layer.tiles.flatten(1, 2)[0].T[:3].tolist() == [[0, 10, 0, 0], [1, 10, 0, -1], [2, 10, 0, -2]]
    assert layer(torch.tensor([[1.0, 10.0, 100.0, 1000.0]])).tolist() == [[100 - 999 * i for i in range(33)]]


def test_a_width_that_four_does_not_divide_has_fewer_neighbours():
    layer = Tiles(torch.ones(2, 6, dtype=torch.int8), None)
    assert layer.tiles.shape == (1, 3, 2, 32)
    assert layer(torch.arange(6.0)[None]).tolist() == [[15, 15]]


@pytest.mark.parametrize("layout", [linear, Packed, Tiles])
def test_in_fp32_it_is_the_model_for_every_attention_and_position(build_model, variant, layout, teacher_forced):
    model = build_model(variant)
    for prompts in (PROMPTS, PROMPTS[:1]):
        ours, truth = teacher_forced(model, model, Decoder(prepared(model, layout)), prompts)
        assert (ours - truth).abs().max() <= TOLERANCE["fp32"] * truth.abs().max()


@pytest.mark.parametrize("precision, layout", [("bf16", Packed), ("bf16", Tiles), ("int8", int8), ("int8", int8_tiles)])
def test_less_precise_weights_choose_the_same_tokens(
    build_model, variant, precision, layout, teacher_forced, assert_same_choice
):
    truth = build_model(variant)
    model = build_model(variant).bfloat16()
    ours, wanted = teacher_forced(truth, model, Decoder(prepared(model, layout)), PROMPTS)
    assert_same_choice(ours, wanted, TOLERANCE[precision])


def test_the_model_is_left_alone_and_shares_what_is_not_laid_out(build_model):
    model = build_model()
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    copy = prepared(model, Packed)
    assert copy.embedding.weight is model.embedding.weight
    assert not any(isinstance(module, nn.Linear | nn.Dropout) for module in copy.modules())
    assert not any(module.training for module in copy.modules())
    assert all(module.training for module in model.modules())
    assert {name: torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items()} == dict.fromkeys(
        before, True
    )


def test_int8_is_for_the_cpu():
    check_quantize("int8", torch.device("cpu"))
    check_quantize(None, torch.device("cuda"))
    with pytest.raises(UserError, match=r"quantize: int8 needs the cpu, this is cuda; take null"):
        check_quantize("int8", torch.device("cuda"))


def test_large_weights_are_in_large_pages_as_they_were():
    weight = torch.randn(1024, 1024)  # 4 MiB
    copy = in_large_pages(weight.t())
    assert copy.is_contiguous()
    assert torch.equal(copy, weight.t())
    if hasattr(mmap, "MADV_HUGEPAGE"):
        assert copy.data_ptr() % (1 << 21) == 0
    del weight
    copy += 1  # it is its own, and may be written to
    small = torch.ones(3)
    assert in_large_pages(small) is small
