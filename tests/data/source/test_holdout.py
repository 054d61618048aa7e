from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.data.source.holdout import by_document, by_tail, cut_at, exact, held_out
from gpt.data.source.streams import count_characters

CHUNKED = st.lists(st.lists(st.text("ab日", max_size=5), max_size=4), max_size=12)
"""Documents in chunks; some are empty, as are some chunks."""
FRACTION = st.decimals(0, "0.99", places=2).map(lambda share: exact(float(share)))


def joined(documents) -> list[str]:
    return ["".join(document) for document in documents]


class Once:
    """Documents that complain, unless each is read to its end before the next one is asked for."""

    def __init__(self, documents):
        self.documents = documents
        self.unread = 0

    def __iter__(self):
        for document in self.documents:
            self.unread += 1
            yield self.chunks(document)
            assert self.unread == 0, "a document was not read to its end"

    def chunks(self, document):
        yield from document
        self.unread -= 1


@pytest.mark.parametrize(
    "fraction, count, indices",
    [
        (0.1, 40, [4, 14, 24, 34]),
        (0.25, 16, [1, 5, 9, 13]),
        (0.5, 8, [0, 2, 4, 6]),
        (0.05, 60, [9, 29, 49]),
        (0.9, 10, [0, 1, 2, 3, 4, 6, 7, 8, 9]),
        (0.0, 100, []),
    ],
)
def test_the_middle_one_of_every_so_many_is_held_out(fraction, count, indices):
    assert [index for index in range(count) if held_out(index, exact(fraction))] == indices


def test_shares_do_not_drift():
    """Of every ten documents one, and the same one, at 10^7 and at 10^18 as at the beginning."""
    for first in (0, 10**7, 10**18):
        assert [held_out(first + i, exact(0.1)) for i in range(10)] == [i == 4 for i in range(10)]
    assert sum(held_out(i, exact(0.3)) for i in range(10**4, 2 * 10**4)) == 3000


@settings(deadline=None)
@given(count=st.integers(0, 500), fraction=FRACTION)
def test_the_number_held_out_is_that_share_of_any_number(count, fraction):
    held = sum(held_out(index, fraction) for index in range(count))
    assert abs(held - count * fraction) <= Fraction(1, 2)


@settings(deadline=None)
@given(documents=CHUNKED, fraction=FRACTION)
def test_by_document_nothing_is_lost_or_twice(documents, fraction):
    train = joined(by_document(Once(documents), fraction, "train"))
    validation = joined(by_document(Once(documents), fraction, "validation"))
    whole = joined(documents)
    assert validation == [text for index, text in enumerate(whole) if held_out(index, fraction)]
    assert train == [text for index, text in enumerate(whole) if not held_out(index, fraction)]


@settings(deadline=None)
@given(documents=CHUNKED, fraction=FRACTION)
def test_by_tail_the_parts_are_the_whole(documents, fraction):
    whole = "".join(joined(documents))
    assert count_characters(Once(documents)) == len(whole)
    cut = cut_at(len(whole), fraction)
    train = joined(by_tail(Once(documents), cut, "train"))
    validation = joined(by_tail(Once(documents), cut, "validation"))
    assert "".join(train) == whole[:cut]
    assert "".join(validation) == whole[cut:]
    assert all(train + validation)
    texts = [text for text in joined(documents) if text]
    if train + validation != texts:  # one was cut in two
        assert [*train[:-1], train[-1] + validation[0], *validation[1:]] == texts


def test_the_document_at_the_cut_is_cut_in_two():
    documents = [["ab", "c"], ["de"], ["fghij"]]
    assert joined(by_tail(documents, 7, "train")) == ["abc", "de", "fg"]
    assert joined(by_tail(documents, 7, "validation")) == ["hij"]
    assert joined(by_tail(documents, 5, "train")) == ["abc", "de"]
    assert joined(by_tail(documents, 5, "validation")) == ["fghij"]
    assert joined(by_tail(documents, 0, "train")) == []
    assert joined(by_tail(documents, 10, "validation")) == []


def test_what_comes_after_the_cut_is_not_read():
    def documents():
        yield ["abc"]
        raise AssertionError

    assert joined(by_tail(documents(), 3, "train")) == ["abc"]


def test_the_cut_is_nanogpts():
    """Its prepare.py cuts at int(n * 0.9)."""
    assert cut_at(1_115_394, exact(0.1)) == 1_003_854
    assert all(cut_at(n, exact(0.1)) == int(n * 0.9) for n in range(20_000))
    assert cut_at(10**30, exact(0.1)) == 9 * 10**29


def test_the_cut_of_tiny_shakespeare():
    path = Path(__file__).parents[4] / "shared" / "corpora" / "tinyshakespeare.txt"
    if not path.exists():
        pytest.skip("needs ../shared/corpora")
    text = path.read_bytes().decode()
    (validation,) = joined(by_tail([[text[:500_000], text[500_000:]]], cut_at(len(text), exact(0.1)), "validation"))
    assert validation == text[int(len(text) * 0.9) :]
    assert len(text) - len(validation) == 1_003_854
