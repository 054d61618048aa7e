"""What every attention remembers: with a cache it computes what it computes without one, in the memory it promises.

Texts go on past the window and the context, to three times of it, unless positions end there.
"""

from itertools import chain, repeat

import pytest
import torch

from gpt.model.mask import Where

CONTEXT = 12
LENGTH = 3 * CONTEXT


@pytest.fixture
def context():
    return CONTEXT


@pytest.fixture
def read(layout):
    """As many of the columns of `rows` as the model has positions for: random tokens, and where they are."""

    def read(model, rows):
        where = layout(rows)
        length = min(where.position.size(1), model.position.limit or LENGTH * 100)
        return torch.randint(50, (len(rows), length)), Where(*(t[:, :length] for t in where))

    return read


def pieces(length, first, size):
    """`first` tokens in chunks of `size`, then one by one."""
    first = min(first, length)
    whole, rest = divmod(first, size)
    return [*repeat(size, whole), *([rest] if rest else []), *repeat(1, length - first)]


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def test_cached_equals_uncached_at_every_step(model, read, fed, assert_close):
    tokens, _ = read(model, [[LENGTH], [LENGTH]])
    assert_close(fed(model, tokens, None, repeat(1, tokens.size(1))), model(tokens))


@pytest.mark.parametrize("heads", [2])
def test_a_prompt_in_chunks_of_any_size_then_single_tokens(model, read, fed, assert_close):
    tokens, _ = read(model, [[LENGTH], [LENGTH]])
    truth = model(tokens)
    for size in (2, 3, 7, 24):
        assert_close(fed(model, tokens, None, pieces(tokens.size(1), 2 * CONTEXT, size)), truth)


def test_a_left_padded_row_equals_its_solo_run(model, read, fed, assert_close):
    tokens, where = read(model, [[-6, 1 + LENGTH], [7 + LENGTH], [-4, 3 + LENGTH]])
    logits = fed(model, tokens, where, pieces(tokens.size(1), 7, 7))
    for row, start in enumerate((6, 0, 4)):
        assert_close(logits[row, start:], model(tokens[row, None, start:])[0])


@pytest.mark.parametrize("heads", [2])
def test_documents_begin_while_it_decodes_and_in_the_middle_of_chunks(model, read, fed, assert_close):
    tokens, where = read(model, [[9, 1, 14, 12], [-6, 20, 10], [1, 1, 1, 33], [12, -8, 5, 1, 10], [20, -16]])
    there = where.position >= 0
    truth = model(tokens, where=where)[there]
    for size in (1, 5, 24):
        assert_close(fed(model, tokens, where, pieces(tokens.size(1), 2 * CONTEXT, size))[there], truth)


@pytest.mark.parametrize(
    "rows", [None, [[330], [-150, 180], [200, 1, 129], [-20, 100, 200, -10]]], ids=["plain", "packed"]
)
@pytest.mark.parametrize("heads, position", [(4, "none"), (2, "rope"), (1, "alibi")], ids=["none", "rope", "alibi"])
def test_chunks_longer_than_blocks(long_model, read, rows, fed, assert_close):
    tokens, where = read(long_model, rows or [[330], [330]])
    where = where if rows else None
    there = where.position >= 0 if where else torch.ones_like(tokens, dtype=torch.bool)
    truth = long_model(tokens, where=where)[there]
    for sizes in ([310], [100, 210], [3, 65, 129, 113], [150, 160]):
        assert_close(fed(long_model, tokens, where, chain(sizes, repeat(1, 330 - sum(sizes))))[there], truth)


def held(model, capacity, length):
    """Bytes of a cache for `capacity` tokens after `length` of them."""
    cache = model.build_cache(capacity)
    for part in torch.zeros(1, length, dtype=torch.int64).split(20, dim=1):
        model(part, where=Where.contiguous(cache.length, part.size(1), "cpu"), cache=cache)
    return cache.nbytes()


def test_memory_grows_with_what_stays_visible_and_with_nothing_else(build, attention):
    model = build(attention=attention, position="none", n_kv_head=2)
    token = 2 * 2 * 8 * 4 + 2 * 8  # keys and values, of 2 heads 8 wide, of 4 bytes; position and document
    shares = [0 if layer.endless else 1 / attention.get("stride", 1) for layer in model.attentions]
    few, many = held(model, 128, 3), held(model, 6528, 300)
    assert many - few == pytest.approx(6400 * token * sum(shares), rel=1e-3)
    assert all(layer.endless for layer in model.attentions) is (many == few)
