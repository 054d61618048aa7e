from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpt.generation.stream import TextStream, overlap


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def streamed(pieces: list[bytes], stop: str = "") -> list[str]:
    stream = TextStream(stop)
    return [*(stream.feed(piece) for piece in pieces), stream.finish()]


@pytest.mark.parametrize("text", ["日本語", "👩‍🚀🇯🇵", "naïve", "\r\n\r\t\n", "\ufeff\u2028\x85\x00", ""])
def test_single_bytes_give_whole_characters(text):
    pieces = streamed([bytes([byte]) for byte in text.encode()])
    assert [piece for piece in pieces if piece] == list(text)


def test_half_a_character_waits_for_the_other_half():
    stream = TextStream()
    emoji = "🚀".encode()
    assert [stream.feed(emoji[:1]), stream.feed(emoji[1:3]), stream.feed(emoji[3:] + b"!")] == ["", "", "🚀!"]


def test_half_a_character_at_the_end_is_one_replacement_character():
    assert streamed(["日本".encode()[:-1]]) == ["日", "\ufffd"]


def test_bytes_that_never_become_a_character():
    assert streamed([b"a\xe6", b"b\xff"]) == ["a", "\ufffdb\ufffd", ""]


def test_stop_string_split_over_pieces():
    stream = TextStream("\n\nUser:")
    assert [stream.feed(p) for p in (b"Hi\n", b"\nUs", b"er", b": more", b"x")] == ["Hi", "", "", "", ""]
    assert stream.stopped
    assert stream.finish() == ""


def test_what_only_looked_like_the_stop_string_is_let_go():
    stream = TextStream("aab")
    # "aa" may begin "aab"; a third a makes the first one certain.
    assert [stream.feed(b"a"), stream.feed(b"a"), stream.feed(b"a"), stream.feed(b"c")] == [
        "",
        "",
        "a",
        "aac",
    ]
    assert not stream.stopped


def test_the_held_beginning_is_text_when_the_bytes_end():
    assert streamed([b"so EN"], stop="END") == ["so ", "EN"]


def test_stop_string_of_many_bytes():
    assert streamed([bytes([byte]) for byte in "はい。終".encode()], stop="。終")[-4:] == ["", "", "", ""]
    assert "".join(streamed([bytes([byte]) for byte in "はい。終わり".encode()], stop="。終")) == "はい"


def test_overlap_is_the_longest_and_never_the_whole():
    assert [overlap("xab", "abab"), overlap("xaba", "abab"), overlap("abab", "abab"), overlap("x", "")] == [
        2,
        3,
        2,
        0,
    ]


@settings(deadline=None)
@given(data=st.binary() | st.text().map(str.encode), cuts=st.lists(st.integers(0, 1000), max_size=20))
def test_pieces_joined_are_the_whole_decoded(data, cuts):
    assert "".join(streamed(pieces_of(data, cuts))) == data.decode("utf-8", errors="replace")


@settings(deadline=None)
@given(
    text=st.text("ab🚀", max_size=30),
    stop=st.text("ab🚀", min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 1000), max_size=20),
)
def test_text_ends_right_before_the_first_stop_string(text, stop, cuts):
    pieces = streamed(pieces_of(text.encode(), cuts), stop)
    assert "".join(pieces) == text.partition(stop)[0]


@settings(deadline=None)
@given(text=st.text("ab", max_size=12), stop=st.text("ab", min_size=1, max_size=4))
def test_nothing_is_held_longer_than_needed(text, stop):
    stream = TextStream(stop)
    shown = "".join(stream.feed(char.encode()) for char in text)
    if not stream.stopped:
        held = text.removeprefix(shown)
        assert stop.startswith(held)
        assert not any(stop.startswith(text[start:]) for start in range(len(shown)))
