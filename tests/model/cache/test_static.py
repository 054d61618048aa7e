import pytest
import torch

from gpt.model.cache import Cache, Memory
from gpt.model.cache.static import StaticMemory
from gpt.model.mask import Where


def pair(value, length=1, batch=2):
    return torch.full((batch, 1, length, 2), float(value)), torch.full((batch, 1, length, 2), -float(value))


def test_what_is_appended_comes_back_in_order():
    memory = StaticMemory(4)
    memory.append(*pair(1, length=2), None)
    keys, values, where = memory.append(*pair(3), None)
    assert keys[0, 0, :, 0].tolist() == [1, 1, 3]
    assert values[1, 0, :, 0].tolist() == [-1, -1, -3]
    assert where is None
    assert memory.length == 3


def test_wheres_are_kept_beside():
    memory = StaticMemory(3)
    memory.append(*pair(1, length=2), Where(torch.tensor([[-1, 0], [0, 1]]), torch.tensor([[0, 5], [5, 5]])))
    *_, where = memory.append(*pair(2), Where(torch.tensor([[1], [2]]), torch.tensor([[5], [5]])))
    assert where.position.tolist() == [[-1, 0, 1], [0, 1, 2]]
    assert where.document.tolist() == [[0, 5, 5], [5, 5, 5]]


def test_the_buffer_is_as_long_as_asked_and_no_longer():
    memory = StaticMemory(3)
    keys, *_ = memory.append(*pair(1), None)
    assert keys.untyped_storage().nbytes() == 2 * 1 * 3 * 2 * 4  # batch · heads · capacity · head_dim · bytes
    memory.append(*pair(1, length=2), None)
    with pytest.raises(ValueError, match="4 tokens do not fit a cache of 3"):
        memory.append(*pair(1), None)


def test_dtype_is_that_of_the_keys():
    keys, *_ = StaticMemory(1).append(*(t.bfloat16() for t in pair(1)), None)
    assert keys.dtype == torch.bfloat16


def test_where_in_some_calls_only_is_refused(build):
    model = build()
    cache = model.build_cache(4)
    model(torch.zeros(1, 2, dtype=torch.int64), cache=cache)
    with pytest.raises(ValueError, match="every call"):
        model(torch.zeros(1, 1, dtype=torch.int64), where=Where.contiguous(2, 1, "cpu"), cache=cache)


def test_another_batch_size_is_refused():
    memory = StaticMemory(4)
    memory.append(*pair(1, batch=2), None)
    with pytest.raises(ValueError, match="a batch of 1 does not fit a cache of 2 rows"):
        memory.append(*pair(1, batch=1), None)


def test_a_memory_that_keeps_no_keys_is_refused(build):
    model = build()
    cache = Cache([Memory(), Memory()])
    with pytest.raises(AssertionError, match="Memory keeps no keys and values"):
        model(torch.zeros(1, 2, dtype=torch.int64), cache=cache)
