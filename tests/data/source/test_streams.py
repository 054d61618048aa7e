from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.data.source.streams import count_characters, drain, grouped, marked, separated

CHUNKED = st.lists(st.lists(st.text("ab日", max_size=5), max_size=4), max_size=12)
"""Documents in chunks; some are empty, as are some chunks."""


def joined(documents) -> list[str]:
    return ["".join(document) for document in documents]


@settings(deadline=None)
@given(
    text=st.text("ab\n", max_size=30),
    cuts=st.lists(st.integers(0, 30)),
    separator=st.text("ab\n", min_size=1, max_size=4),
)
def test_separators_are_found_wherever_chunks_end(text, cuts, separator):
    bounds = [0, *sorted(cuts), len(text)]
    chunks = [text[a:b] for a, b in pairwise(bounds)]
    documents = joined(grouped(separated(chunks, separator)))
    assert documents == [document for document in text.split(separator) if document]


@given(documents=CHUNKED)
def test_grouping_undoes_marking_but_for_empty_documents(documents):
    assert joined(grouped(marked(documents))) == [text for text in joined(documents) if text]


def test_what_is_not_read_of_a_group_is_passed_over():
    groups = grouped(iter(["a", "b", None, "c", "d", None, "e"]))
    first = next(groups)
    assert next(iter(first)) == "a"
    assert "".join(next(groups)) == "cd"
    assert list(first) == []
    assert joined(groups) == ["e"]


def test_characters_are_counted_over_all_documents():
    assert count_characters([["ab", "日"], [], ["", "c"]]) == 4


def test_draining_reads_to_the_end():
    chunks = iter(["a", "b"])
    drain(chunks)
    assert list(chunks) == []
