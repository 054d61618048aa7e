import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpt.model.mask import Where, dense_mask
from gpt.model.pattern import Pattern


def seen(pattern: Pattern, query: int) -> list[int]:
    """The positions that the token at `query` sees in a document of 12."""
    where = Where.contiguous(0, 12, "cpu")
    return dense_mask(pattern.visible, where, where)[0, 0, query].nonzero().flatten().tolist()


@pytest.mark.parametrize(
    "pattern, query, there",
    [
        (Pattern(3), 1, [0, 1]),
        (Pattern(3), 9, [7, 8, 9]),
        (Pattern(1), 9, [9]),
        (Pattern(3, sinks=2), 9, [0, 1, 7, 8, 9]),
        (Pattern(3, stride=4), 9, [3, 7, 8, 9]),
        (Pattern(1, sinks=1, stride=4), 2, [0, 2]),
        (Pattern(2, stride=1), 4, [0, 1, 2, 3, 4]),
    ],
)
def test_who_is_seen(pattern, query, there):
    assert seen(pattern, query) == there


def test_another_document_is_not_seen():
    here, there = Where(torch.tensor([5]), torch.tensor([1])), Where(torch.tensor([0]), torch.tensor([0]))
    assert not Pattern(8, sinks=8, stride=1).visible(here, there)
    assert Pattern(8, sinks=8, stride=1).visible(here, there._replace(document=torch.tensor([1])))


@given(st.integers(1, 9), st.integers(0, 9), st.none() | st.integers(1, 9), st.integers(1, 40))
def test_what_is_kept_is_what_a_far_token_sees_and_each_has_a_rank(window, sinks, stride, length):
    pattern = Pattern(window, sinks, stride)
    kept = pattern.kept(length)
    far = Where(torch.tensor([length + window]), torch.tensor([0]))
    where = Where(torch.arange(-1, length), torch.zeros(length + 1, dtype=torch.int64))
    assert (pattern.visible(far, where).nonzero().flatten() - 1).tolist() == kept
    ranks = pattern.rank(where.position, len(kept)).tolist()[1:]
    assert [ranks[position] for position in kept] == list(range(len(kept)))
    assert all(rank == len(kept) for position, rank in enumerate(ranks) if position not in kept)
