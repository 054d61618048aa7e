import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.insight.data.characters import CODES, count, name, rarest, unseen, utf8_bytes, visible


def spread(text):
    counts = np.zeros(CODES, np.int64)
    counts[: len(count(text))] = count(text)
    return counts


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=())))
def test_characters_are_counted_as_python_counts_them(text):
    counts = count(text)
    assert {chr(code): counts[code] for code in np.flatnonzero(counts)} == Counter(text)


@settings(deadline=None)
@given(st.text())
def test_bytes_are_those_of_utf8(text):
    assert utf8_bytes(count(text)) == len(text.encode())


def test_the_rarest_come_first():
    counts = spread("bbbaac")
    assert rarest(counts, 2) == [(ord("c"), 1), (ord("a"), 2)]
    assert rarest(counts, 9) == [(ord("c"), 1), (ord("a"), 2), (ord("b"), 3)]
    assert rarest(spread(""), 9) == []


def test_unseen_are_those_of_validation_alone():
    assert unseen(spread("abc"), spread("axyyc")) == [ord("y"), ord("x")]


@pytest.mark.parametrize(
    "character, expected",
    [
        ("é", "LATIN SMALL LETTER E WITH ACUTE"),
        ("\0", "NUL"),
        ("\x01", "control character"),
        ("\ue000", "private use"),
        ("\uffff", "unassigned"),
        ("\ud800", "half of a surrogate pair"),
        ("日", "CJK UNIFIED IDEOGRAPH-65E5"),
    ],
)
def test_each_character_has_a_name(character, expected):
    assert name(ord(character)) == expected


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_what_is_visible_stands_on_one_line(text):
    shown = visible(text)
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Zl", "Zp", "Zs"} for c in shown)
    assert len(shown) >= len(text)


def test_white_space_is_seen():
    assert visible("a b\tc\r\n\u3000\u00a0") == "a·b⇥c←↵□<U+00A0>"
