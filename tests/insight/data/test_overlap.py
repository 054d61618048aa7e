import pytest

from gpt.insight.data import overlap
from gpt.insight.data.overlap import Held, Search, Sizes
from gpt.insight.data.survey import survey

LONG = "a line that is long enough to be no accident at all"  # 51 characters


def search(train, validation):
    """What is found of validation documents among training documents, each given as a list of chunks."""
    held = Held()
    survey(validation, held)
    search = Search(held)
    survey(train, search)
    return search.found


def test_a_whole_document_however_it_is_cut_into_chunks():
    found = search(train=[["x"], ["sho", "rt"]], validation=[["s", "hort"], ["other"]])
    assert (found.documents, found.document_bytes) == (1, 5)
    assert (found.lines, found.line_bytes, found.example) == (0, 0, "")
    assert found.one_in == 1


def test_lines_of_forty_characters_or_more():
    exact, below = "x" * 40, "y" * 39
    text = f"{exact}\n{below}\n{LONG}\n"
    found = search(train=[[text]], validation=[["z\n" + text]])
    assert (found.documents, found.lines, found.line_bytes) == (0, 2, 40 + 51)
    assert found.example == LONG


def test_white_space_and_line_ends_around_a_line_do_not_matter():
    found = search(train=[[LONG + "\n"]], validation=[["  " + LONG + " \r", "\nrest"]])
    assert (found.lines, found.line_bytes) == (1, 51)
    assert search(train=[[f"{' ' * 40}short"]], validation=[[f"{' ' * 40}short"]]).lines == 0


def test_validation_text_counts_once_for_each_time_it_stands_there():
    found = search(train=[[f"{LONG}\n" * 3]], validation=[[f"{LONG}\n" * 2]])
    assert (found.lines, found.line_bytes) == (1, 2 * 51)


def test_bytes_are_those_of_utf8():
    line = "吾輩は猫である" * 6  # 42 characters
    assert search(train=[[line]], validation=[[line]]).line_bytes == 3 * 42


def test_nothing_is_shared():
    found = search(train=[[LONG], [], [""]], validation=[[LONG + "!"], [""]])
    assert (found.documents, found.document_bytes, found.lines) == (0, 0, 0)


def test_an_example_is_cut():
    assert len(search(train=[["x" * 5000]], validation=[["x" * 5000]]).example) == overlap.SHOWN


def test_sizes_are_taken_once():
    sizes = Sizes()
    sizes.add(7, 3)
    sizes.add(7, 4)
    assert (sizes.take(7), sizes.take(7), sizes.take(8)) == (7, 0, 0)


def test_memory_is_bounded_and_numbers_are_estimated(monkeypatch):
    monkeypatch.setattr(overlap, "KEPT", 256)
    lines = [f"{i:060}\n" for i in range(4000)]
    held = Held()
    survey([lines], held)
    assert len(held.lines._sizes) <= 256
    assert held.lines.one_in in (16, 32)  # 4000 / 16 = 250, more or less
    finding = Search(held)
    survey([lines[:2000]], finding)
    assert finding.found.lines == pytest.approx(2000, rel=0.6)
    assert finding.found.line_bytes == 60 * finding.found.lines
