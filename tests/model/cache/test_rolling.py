import pytest
import torch

from gpt.model.cache import rolling
from gpt.model.cache.rolling import RollingMemory
from gpt.model.mask import Where
from gpt.model.pattern import Pattern


def tokens(first: int, last: int, rows: int = 1) -> torch.Tensor:
    """Keys that are the numbers of their tokens: (rows, 1 head, tokens, width 1)."""
    return torch.arange(first, last + 1.0).expand(rows, 1, -1)[..., None]


def shown(given) -> list[list[int]]:
    """The tokens that are there, row by row, sorted."""
    keys, values, where = given
    assert torch.equal(keys, -values)
    rows = keys[:, 0, :, 0].tolist()
    if where is None:
        return rows
    positions = where.position.expand(len(rows), -1).tolist()
    return [
        sorted(int(key) for key, p in zip(row, at, strict=True) if p >= 0)
        for row, at in zip(rows, positions, strict=True)
    ]


def feed(memory: RollingMemory, first: int, last: int, where: Where | None = None, rows: int = 1):
    keys = tokens(first, last, rows)
    return memory.append(keys, -keys, where)


def test_one_token_sees_the_window_the_sinks_and_the_columns():
    memory = RollingMemory(Pattern(window=3, sinks=1, stride=4), capacity=20)
    seen = [shown(feed(memory, t, t))[0] for t in range(12)]
    assert seen[:4] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert seen[6] == [0, 3, 4, 5, 6]
    assert seen[11] == [0, 3, 7, 9, 10, 11]


def test_a_token_that_is_kept_is_copied_without_an_index(monkeypatch):
    """On a GPU the making of one waits for all that was asked of it before."""
    memory = RollingMemory(Pattern(window=2, sinks=2, stride=4), capacity=20)
    monkeypatch.setattr(rolling.torch, "tensor", lambda *_, **__: pytest.fail("an index was made"))
    feed(memory, 0, 2)
    given = [shown(feed(memory, t, t))[0] for t in range(3, 9)]
    assert given[-1] == [0, 1, 3, 7, 8]


def test_a_first_chunk_is_not_copied_beside_what_is_not_there(monkeypatch):
    memory = RollingMemory(Pattern(window=3, sinks=1), capacity=20)
    monkeypatch.setattr(memory, "_before", lambda plain: pytest.fail("nothing was there before"))
    feed(memory, 0, 6)


def test_a_chunk_gets_what_was_in_order_and_what_stands_apart():
    memory = RollingMemory(Pattern(window=3, sinks=1, stride=4), capacity=20)
    keys, _, where = feed(memory, 0, 6)
    assert where is None, "a first chunk comes back as it is"
    assert keys.flatten().tolist() == list(range(7))
    keys, _, where = feed(memory, 7, 9)
    assert keys.flatten().tolist() == [0, 3, 4, 5, 6, 7, 8, 9]
    assert where.position.flatten().tolist() == [0, 3, 4, 5, 6, 7, 8, 9]
    assert memory.apart == 2
    assert shown(feed(memory, 10, 10)) == [[0, 3, 7, 8, 9, 10]]


def test_rows_of_different_lengths():
    memory = RollingMemory(Pattern(window=2, sinks=1), capacity=20)
    start = torch.tensor([[0], [-3]])  # the second row begins three tokens later

    def at(first, last):
        position = (torch.arange(first, last + 1) + start).clamp(min=-1)
        return Where(position, torch.zeros_like(position))

    feed(memory, 0, 1, at(0, 1), rows=2)
    assert shown(feed(memory, 2, 2, at(2, 2), rows=2)) == [[0, 1, 2], []]
    assert shown(feed(memory, 3, 3, at(3, 3), rows=2)) == [[0, 2, 3], [3]]
    assert shown(feed(memory, 4, 5, at(4, 5), rows=2)) == [[0, 2, 3, 4, 5], [3, 4, 5]]
    assert shown(feed(memory, 6, 6, at(6, 6), rows=2)) == [[0, 5, 6], [3, 5, 6]]


def test_a_new_document_takes_the_place_of_the_old_one():
    memory = RollingMemory(Pattern(window=2, sinks=2), capacity=20)

    def at(position, document):
        return Where(torch.tensor([position]), torch.tensor([document]))

    def of_the_new_one(keys, values, where):
        there = zip(keys.flatten().tolist(), where.position[0].tolist(), where.document[0].tolist(), strict=True)
        return sorted(key for key, position, document in there if document == 1 and position >= 0)

    feed(memory, 0, 4, at([0, 1, 2, 3, 4], [0] * 5))
    feed(memory, 5, 7, at([5, 0, 1], [0, 1, 1]))
    assert of_the_new_one(*feed(memory, 8, 8, at([2], [1]))) == [6, 7, 8]
    assert of_the_new_one(*feed(memory, 9, 9, at([3], [1]))) == [6, 7, 8, 9], "the first two are its own"


@pytest.mark.parametrize(
    "pattern, slots",
    [(Pattern(8), 9), (Pattern(8, sinks=4), 13), (Pattern(8, sinks=0, stride=100), 8 + 9 + 1)],
)
def test_how_much_it_holds(pattern, slots):
    memory = RollingMemory(pattern, capacity=1000)
    assert memory.nbytes() == 0
    memory.append(torch.zeros(2, 3, 20, 5), torch.zeros(2, 3, 20, 5), None)
    there = memory.nbytes()
    assert there == slots * (2 * 2 * 3 * 5 * 4 + 2 * 8)  # keys and values in fp32; position and document
    memory.append(torch.zeros(2, 3, 900, 5), torch.zeros(2, 3, 900, 5), None)
    assert memory.nbytes() == there


def test_it_is_no_longer_than_its_capacity():
    memory = RollingMemory(Pattern(window=100, sinks=4), capacity=6)
    feed(memory, 0, 4)
    assert memory.nbytes() == 7 * (2 * 4 + 2 * 8)
    with pytest.raises(ValueError, match="7 tokens do not fit a cache of 6"):
        feed(memory, 5, 6)


def test_another_batch_is_refused():
    memory = RollingMemory(Pattern(window=4), capacity=6)
    feed(memory, 0, 1)
    with pytest.raises(ValueError, match="a batch of 2 does not fit a cache of 1 rows"):
        feed(memory, 2, 2, rows=2)
