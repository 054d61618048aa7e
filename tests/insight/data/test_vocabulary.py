import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.config import UserError
from gpt.data.token_file import Counts, TokenFile
from gpt.insight.data import vocabulary
from gpt.insight.data.vocabulary import document_lengths, token_use


def file(folder, ids, vocab_size):
    np.array(ids, "<u2").tofile(folder / "train.bin")
    return TokenFile(folder / "train.bin", Counts(tokens=len(ids), documents=1, text_bytes=0), vocab_size)


def test_by_hand(tmp_path):
    tokens = np.array([1, 1, 0, 2, 0, 0, 1, 1, 1, 0], np.uint16)  # documents of 2, 1, 0 and 3 tokens
    use = token_use(file(tmp_path, tokens, 5), end_of_text=0, context=2)
    assert use.counts.tolist() == [4, 5, 1, 0, 0]
    assert use.unseen.tolist() == [3, 4]
    assert (use.fewer_than(1), use.fewer_than(2), use.fewer_than(5)) == (2, 3, 4)
    assert use.commonest(2) == [(1, 0.5), (0, 0.4)]
    assert len(use.commonest(9)) == 3
    assert (use.shorter, use.longer) == (2, 1)


def test_without_end_of_text_all_is_one_document(tmp_path):
    use = token_use(file(tmp_path, [1, 0, 1], 2), end_of_text=None, context=2)
    assert (use.shorter, use.longer) == (0, 1)


def test_an_id_outside_the_vocabulary_is_named(tmp_path):
    with pytest.raises(UserError, match=r"train.bin: token id 3 is outside the vocabulary of 3, so"):
        token_use(file(tmp_path, [0, 3], 3), 0, 2)


def test_no_tokens(tmp_path):
    use = token_use(file(tmp_path, [], 3), end_of_text=0, context=2)
    assert use.commonest(3) == []
    assert (use.shorter, use.longer) == (0, 0)


@settings(deadline=None)
@given(lengths=st.lists(st.integers(0, 20)), open_end=st.integers(0, 5))
def test_blocks_do_not_matter(lengths, open_end, tmp_path_factory):
    tokens = np.array([i for n in lengths for i in [*[1] * n, 0]] + [1] * open_end, np.uint16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "BLOCK", 7)
        found = [n for part in document_lengths(tokens, end_of_text=0) for n in part.tolist()]
        assert token_use(file(tmp_path_factory.mktemp("t"), tokens, 2), 0, 3).counts.sum() == len(tokens)
    assert found == lengths + [open_end] * bool(open_end)
