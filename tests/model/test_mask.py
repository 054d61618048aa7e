import pytest
import torch

from gpt.model.mask import Predicate, Where, build_causal_mask, causal, dense_mask, same_document

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


@pytest.mark.parametrize("predicate", [EVERYTHING, EVERYTHING & causal, EVERYTHING | causal])
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
