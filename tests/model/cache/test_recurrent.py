"""The memory of linear attention; with q = k = 0 each feature is 1 and each query gets the mean of what it sees."""

import pytest
import torch

from gpt.model.attention import Place
from gpt.model.cache.recurrent import RecurrentMemory
from gpt.model.config import GPTConfig
from gpt.model.mask import Where

SIZES = {"n_head": 1, "d_model": 2, "attention": {"name": "linear"}}


def mean_of_seen(memory, values, positions=None, documents=None):
    """What a query at each token takes, for rows of numbers as values; q = k = 0."""
    config = GPTConfig(**SIZES)
    value = torch.tensor(values)[:, None, :, None].expand(-1, 1, -1, 2)
    where = positions and Where(torch.tensor(positions), torch.tensor(documents))
    zeros = torch.zeros(value.shape)
    mixed = config.attention.build(config, layer=0).attend(zeros, zeros, value, Place(where, None, None, None), memory)
    assert torch.equal(mixed[..., 0], mixed[..., 1])
    return mixed[:, 0, :, 0].tolist()


def test_the_mean_goes_on_where_it_was():
    memory = RecurrentMemory()
    assert mean_of_seen(memory, [[3.0, 5.0]]) == [[3, 4]]
    assert mean_of_seen(memory, [[10.0]]) == [[6]]
    assert mean_of_seen(memory, [[2.0, 0.0]]) == [[5, 4]]
    # Σ φ(k) [v, 1]: two features of 1, values 3 + 5 + 10 + 2 + 0 twice, and five tokens
    assert memory.state.sums[0, 0].tolist() == [[20, 20, 5], [20, 20, 5]]


def test_a_new_document_begins_anew_in_its_row_alone():
    memory = RecurrentMemory()
    mean_of_seen(memory, [[4.0, 8.0], [4.0, 8.0]], [[0, 1], [0, 1]], [[0, 0], [0, 0]])
    assert mean_of_seen(memory, [[3.0], [3.0]], [[2], [0]], [[0], [1]]) == [[5], [3]]
    assert mean_of_seen(memory, [[9.0, 1.0], [9.0, 1.0]], [[3, 4], [1, 0]], [[0, 0], [1, 2]]) == [[6, 5], [6, 1]]
    assert memory.state.document.tolist() == [0, 2]


def test_padding_neither_counts_nor_ends_a_document():
    memory = RecurrentMemory()
    assert mean_of_seen(memory, [[7.0, 7.0], [2.0, 7.0]], [[-1, -1], [0, -1]], [[0, 0], [3, 9]]) == [[0, 0], [2, 0]]
    assert memory.state.document.tolist() == [0, 3]
    assert mean_of_seen(memory, [[7.0], [7.0]], [[-1], [-1]], [[0], [9]]) == [[0], [0]]
    assert memory.state.document.tolist() == [0, 3]
    assert mean_of_seen(memory, [[5.0], [4.0]], [[0], [1]], [[5], [3]]) == [[5], [3]]
    assert mean_of_seen(memory, [[7.0, 7.0], [6.0, 7.0]], [[1, -1], [2, -1]], [[5, 0], [3, 0]]) == [[6, 0], [4, 0]]
    assert memory.state.document.tolist() == [5, 3]


def test_neither_does_padding_that_fills_chunks():
    memory = RecurrentMemory()
    mean_of_seen(memory, [[3.0, 5.0] + [7.0] * 200], [[0, 1] + [-1] * 200], [[4, 4] + [0] * 200])
    assert memory.state.document.tolist() == [4]
    assert mean_of_seen(memory, [[7.0] * 200 + [10.0]], [[-1] * 200 + [2]], [[0] * 200 + [4]])[0][-1] == 6


@pytest.mark.parametrize("positioned", [False, True])
def test_its_size_never_changes(positioned):
    memory = RecurrentMemory()
    assert memory.nbytes() == 0
    start = 0
    for length in (1, 700, 1, 64, 3):
        position = [list(range(start, start + length))] * 2 if positioned else None
        mean_of_seen(memory, [[1.0] * length] * 2, position, [[0] * length] * 2)
        start += length
        # 2 rows, 1 head, 2 · 3 sums of 4 bytes; 2 rows, a document of 8 bytes
        assert memory.nbytes() == 2 * 6 * 4 + 2 * 8
        assert sum(tensor.untyped_storage().nbytes() for tensor in memory.state) == memory.nbytes()


def test_sums_are_fp32_for_16_bit_keys():
    """In bf16 the 257th token would be lost, 256 + 1 being 256; in fp16 all after 65,504."""
    for dtype in (torch.bfloat16, torch.float16):
        memory, config = RecurrentMemory(), GPTConfig(**SIZES)
        attention = config.attention.build(config, layer=0)
        zeros, ones = torch.zeros(1, 1, 70_000, 2, dtype=dtype), torch.ones(1, 1, 70_000, 2, dtype=dtype)
        place = Place(None, None, None, None)
        assert (attention.attend(zeros, zeros, ones, place, memory) == 1).all()
        attention.attend(zeros[:, :, :1], zeros[:, :, :1], ones[:, :, :1], place, memory)
        assert memory.state.sums.dtype == torch.float32
        assert memory.state.sums.unique().tolist() == [70_001]


def test_another_batch_size_is_refused():
    memory = RecurrentMemory()
    mean_of_seen(memory, [[1.0], [1.0]])
    with pytest.raises(ValueError, match="a batch of 1 does not fit a cache of 2 rows"):
        mean_of_seen(memory, [[1.0]])
