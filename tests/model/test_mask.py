from itertools import groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.model.mask import (
    Predicate,
    Where,
    build_causal_mask,
    causal,
    dense_mask,
    every,
    first,
    same_document,
    within,
)

EVERYTHING = Predicate(lambda query, key: torch.ones_like(query.position + key.position, dtype=torch.bool))


def where(positions, documents=None):
    position = torch.tensor([positions])
    return Where(position, torch.tensor([documents]) if documents else torch.zeros_like(position))


def test_causal_mask_by_hand():
    assert build_causal_mask(3).shape == (1, 1, 3, 3)
    assert build_causal_mask(3)[0, 0].tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


@pytest.mark.parametrize("length", [0, -1])
def test_causal_mask_needs_a_length(length):
    with pytest.raises(ValueError, match=f"at least 1, got {length}"):
        build_causal_mask(length)


def test_causality_is_of_positions_and_not_of_indices():
    keys = where([2, 0, 1])  # a rolling cache's slots are in any order
    assert dense_mask(causal, where([1]), keys)[0, 0].tolist() == [[False, True, True]]


def test_documents_and_causality_compose():
    here = where([0, 1, 0, 1], [0, 0, 1, 1])
    both = dense_mask(causal & same_document, here, here)[0, 0].int().tolist()
    assert both == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    either = dense_mask(causal | same_document, here, here)[0, 0].int().tolist()
    assert either == [[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]]


def seen(predicate, query, keys):
    """What one query sees of keys at the positions `keys`."""
    return dense_mask(predicate, where([query]), where(keys))[0, 0, 0].int().tolist()


def test_a_window_is_of_the_query_itself_and_those_before():
    assert seen(causal & within(3), 5, [2, 3, 4, 5, 6]) == [0, 1, 1, 1, 0]
    assert seen(causal & within(1), 5, [4, 5]) == [0, 1]


def test_sinks_are_the_first_tokens_of_a_document():
    assert seen(first(2), 9, [0, 1, 2, 9]) == [1, 1, 0, 0]
    assert seen(first(0), 9, [0, 9]) == [0, 0]
    here = where([0, 1, 0, 1], [3, 3, 8, 8])
    both = dense_mask(causal & same_document & first(1), here, here)[0, 0].int().tolist()
    assert both == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]


def test_columns_are_the_last_of_each_stride():
    assert seen(every(3), 9, range(9)) == [0, 0, 1, 0, 0, 1, 0, 0, 1]
    assert seen(every(1), 9, range(4)) == [1, 1, 1, 1]


def test_what_is_beyond_the_window_is_its_negation():
    assert seen(causal & ~within(2), 4, range(6)) == [1, 1, 1, 0, 0, 0]


OF_ALL_KINDS = [
    EVERYTHING,
    EVERYTHING & causal,
    EVERYTHING | causal,
    within(9),
    first(9),
    every(1),
    ~first(0),
    ~~causal,
]


@pytest.mark.parametrize("predicate", OF_ALL_KINDS)
def test_nothing_sees_or_is_seen_at_position_minus_one(predicate):
    here = where([-1, 0, 1])
    seen = dense_mask(predicate, here, here)[0, 0]
    assert not seen[0].any()
    assert not seen[:, 0].any()
    assert seen[2].tolist() == [False, True, True]


def test_contiguous():
    position, document = Where.contiguous(3, 2, "cpu")
    assert position.tolist() == [[3, 4]]
    assert document.tolist() == [[0, 0]]


def test_packed_rows_by_hand():
    position, document = Where.packed(torch.tensor([[0, 5, 6, 0, 0, 7], [5, 6, 0, 7, 8, 9]]), separator=0)
    assert position.tolist() == [[0, 1, 2, 0, 0, 1], [0, 1, 0, 1, 2, 3]]
    assert document.tolist() == [[1, 1, 1, 2, 3, 3], [0, 0, 1, 1, 1, 1]]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=9, max_size=9), min_size=1, max_size=4))
def test_packed_documents_begin_at_0_with_the_separator_and_go_on_one_by_one(rows):
    position, document = (t.tolist() for t in Where.packed(torch.tensor(rows), separator=0))
    for tokens, places, documents in zip(rows, position, document, strict=True):
        assert documents == sorted(documents)
        begun = 0
        for _, group in groupby(range(9), key=documents.__getitem__):
            indices = list(group)
            assert [places[index] for index in indices] == list(range(len(indices)))
            assert [tokens[index] == 0 for index in indices[1:]] == [False] * (len(indices) - 1)
            begun += tokens[indices[0]] == 0
        assert begun == tokens.count(0)
