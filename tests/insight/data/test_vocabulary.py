import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.insight.data import vocabulary
from gpt.insight.data.vocabulary import document_lengths, token_use


def test_by_hand():
    tokens = np.array([1, 1, 0, 2, 0, 0, 1, 1, 1, 0], np.uint16)  # documents of 2, 1, 0 and 3 tokens
    use = token_use(tokens, vocab_size=5, end_of_text=0, context=2)
    assert use.counts.tolist() == [4, 5, 1, 0, 0]
    assert use.unseen.tolist() == [3, 4]
    assert (use.fewer_than(1), use.fewer_than(2), use.fewer_than(5)) == (2, 3, 4)
    assert use.commonest(2) == [(1, 0.5), (0, 0.4)]
    assert len(use.commonest(9)) == 3
    assert (use.shorter, use.longer) == (2, 1)


def test_without_end_of_text_all_is_one_document():
    use = token_use(np.array([1, 0, 1]), vocab_size=2, end_of_text=None, context=2)
    assert (use.shorter, use.longer) == (0, 1)


def test_no_tokens():
    use = token_use(np.empty(0, np.uint16), vocab_size=3, end_of_text=0, context=2)
    assert use.commonest(3) == []
    assert (use.shorter, use.longer) == (0, 0)


@settings(deadline=None)
@given(st.lists(st.integers(0, 20)), st.integers(0, 5))
def test_blocks_do_not_matter(lengths, open_end):
    tokens = np.array([i for n in lengths for i in [*[1] * n, 0]] + [1] * open_end, np.uint16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "BLOCK", 7)
        found = [n for part in document_lengths(tokens, end_of_text=0) for n in part.tolist()]
        assert token_use(tokens, 2, 0, 3).counts.sum() == len(tokens)
    assert found == lengths + [open_end] * bool(open_end)
