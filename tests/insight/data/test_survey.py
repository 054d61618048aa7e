import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.insight.data import survey as module
from gpt.insight.data.survey import beginning, survey
from gpt.insight.data.trouble import CONTROL, MARKS, REPLACED


def chunks(text, size):
    return [text[i : i + size] for i in range(0, len(text), size)]


def test_by_hand():
    seen = survey([["a日\r", "\nbc\r\rd\n"], [], ["xyz"]])
    assert seen.characters == 9 + 3 + 1
    assert seen.text_bytes == 9 + 3 + 1 + 2
    assert [seen.counts[ord(c)] for c in "ad日x"] == [1, 1, 1, 1]
    assert (seen.crlf, seen.lone_lf, seen.lone_cr) == (1, 1, 2)
    assert (seen.lengths.count, seen.lengths.shortest, seen.lengths.longest) == (3, 0, 10)
    assert (seen.longest_line, seen.longest_line_document) == (5, 1)  # bc\r\rd


def test_nothing():
    seen = survey([])
    assert (seen.characters, seen.text_bytes, seen.lengths.count) == (0, 0, 0)
    assert (seen.longest_line, seen.longest_line_document, seen.found) == (0, 0, {})


@settings(deadline=None)
@given(st.lists(st.text("ab日\r\n", max_size=30)), st.integers(1, 7))
def test_neither_chunks_nor_blocks_matter(texts, size):
    whole = survey([[text] for text in texts])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 4)
        cut = survey([chunks(text, size) for text in texts])
    assert (whole.counts == cut.counts).all()
    assert (whole.longest_line, whole.longest_line_document) == (cut.longest_line, cut.longest_line_document)
    assert (whole.lengths.count, whole.lengths.total) == (cut.lengths.count, cut.lengths.total)
    assert cut.crlf == "".join(texts).count("\r\n")
    lines = [line.removesuffix("\r") for text in texts for line in text.split("\n")]
    assert whole.longest_line == max(map(len, lines), default=0)


def test_a_line_far_longer_than_what_is_compared(monkeypatch):
    monkeypatch.setattr(module, "LONGEST_COMPARED", 10)
    seen = survey([["x" * 8, "y" * 8, "z" * 8, "\nshort"], ["s" * 24]])
    assert (seen.longest_line, seen.longest_line_document) == (24, 1)


def test_trouble_is_placed_in_its_document():
    seen = survey([["fine"], ["one\ufffd", "two<|endof", "text|>\x01\ufffd"]])
    many, place = seen.found[REPLACED]
    assert (many, place.document, place.text) == (2, 2, "fineone\ufffdtwo<|endoftext|>\x01\ufffd")
    assert seen.found[MARKS][0] == 1
    assert seen.found[CONTROL][1].document == 2
    assert survey([["fine"], ["\ufffdat once"]]).found[REPLACED][1].document == 2


def test_trouble_is_counted_over_blocks_and_shown_where_it_stands_first(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    seen = survey([["ab\0", "cdef"], ["gh\0\0"]])
    ((many, place),) = seen.found.values()
    assert (many, place.document) == (3, 1)
    assert "ab\0" in place.text


def test_a_beginning_is_cut_by_bytes():
    def read(size):
        return ["".join(document) for document in beginning([["ab", "日本"], ["cd"], ["ef"]], size)]

    assert read(100) == ["ab日本", "cd", "ef"]
    assert read(9) == ["ab日本", "c"]
    assert read(8) == ["ab日本"]
    assert read(6) == ["ab日"]  # of the next character one byte is in, which is none


def test_a_beginning_reads_no_further():
    def documents():
        yield ["abc"]
        raise AssertionError("read too far")

    assert ["".join(d) for d in beginning(documents(), 3)] == ["abc"]
