import random
from itertools import pairwise

import pytest
import regex
import tiktoken
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpt.data.encoding import PATTERNS
from gpt.data.pieces import BOUNDARY, SIZE, STRETCH, WHOLE, assigned, pieces
from gpt.data.tokenizer.bpe import learn

LONGEST = STRETCH * SIZE
BYTES = {bytes([byte]): byte for byte in range(256)}
BLOCK = 100_000  # characters that are made by chance; the texts repeat them


def join(make, size=BLOCK) -> str:
    """What `make` gives with a random number generator, one after the other."""
    rng = random.Random(0)
    parts, length = [], 0
    while length < size:
        parts.append(make(rng))
        length += len(parts[-1])
    return "".join(parts)


def one_of(*parts):
    return lambda rng: rng.choice(parts)


HURTING = {
    "Japanese": one_of("吾輩は猫である。", "名前はまだ無い、", "「どこで生れたか」", "とんと見当がつかぬ"),
    "Japanese without marks": lambda rng: "".join(rng.choices("あいう日本語アイウ", k=rng.randint(1, 9000))) + " ",
    "digits": one_of(*"0123456789"),
    "long numbers": lambda rng: str(rng.randint(10**50, 10**100)) * rng.randint(1, 50) + "x",
    "letters and digits": lambda rng: rng.choice("abcdefg") + rng.choice("0123456789"),
    "CamelCase": one_of("The", "Quick", "BROWN", "fox", "Jumps", "O", "x"),
    "capitals after letters without case": lambda rng: "日" * rng.randint(1, 5) + "A" * rng.randint(1, 3000)
    + rng.choice(["b", "日", "B1"]),
    "no line break": one_of("the ", "people ", "of ", "United ", "States, ", "don't ", "we? "),
    "marks": one_of("!!!\n", "...", "--", "?!", "—", "…", "//", "'\"", "(", ")\r\n", "。", "| ", "\t"),
    "lines of marks": one_of(".\n", "..\n", "!\n"),
    "lines of marks, CRLF": one_of(".\r\n", "..\r\n", "!\r\n\r\n"),
    "contractions": one_of("we'll", "I've", "IT'S", "''s", "o'x", "'", "B", "a'ſ", "they're"),
    "spaces before words": lambda rng: " " * rng.randint(1, 200) + rng.choice(["the", "x", "."]),
    "runs of CRLF": lambda rng: "\r\n" * rng.randint(1, 300) + rng.choice(["x", "X", ".", " ", "\t"]),
    "combining marks": lambda rng: rng.choice("eéaんが ") + "".join(rng.choices("\u0301\u0323\u3099", k=3)),
    "Hindi without spaces": one_of(*"हनदकतबा", "ि", "्", "़ "),
    "emoji": one_of("👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇯🇵", "❤️"),
    "emoji between letters": one_of("👩‍👩‍👧‍👦", "👍🏽", "a", "日"),
    "letters and digits of a newer Unicode": one_of("\u088f. ", "\U00011de0, ", "a\u0558! ", "\u088f\u0558.\n"),
    "controls": one_of(*"\0\x1c\x1d\x1e\x1f\x85\u2028\u200b\ufeff ab."),
}  # fmt: skip
"""Texts for which it is hard to find a place to cut."""

ONE_WORD = {"digits": {"gpt2"}, "CamelCase": {"gpt2", "modern", "cl100k"}, "emoji": {"gpt2", "cl100k", "o200k"}}
"""Texts that are one word, to these patterns; they are cut somewhere, and what is lost is confessed."""


@pytest.fixture(scope="module")
def ranks() -> dict[bytes, int]:
    """A vocabulary learned from the texts that hurt, so that nearly any other split gives other ids."""
    tokens = learn((join(make, 20_000) for make in HURTING.values()), 3000, PATTERNS["o200k"])
    return {token: rank for rank, token in enumerate(tokens)}


def encoding(pattern: str, ranks: dict[bytes, int]) -> tiktoken.Encoding:
    return tiktoken.Encoding("test", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", HURTING)
def test_the_tokens_are_those_of_the_whole(name, pattern, ranks):
    text = join(HURTING[name]) * 10  # a megabyte or more
    bounds = [0, *sorted(random.Random(1).sample(range(len(text)), 30)), len(text)]
    cut = list(pieces([text[start:end] for start, end in pairwise(bounds)], PATTERNS[pattern]))
    assert cut == list(pieces([text], PATTERNS[pattern]))
    assert "".join(cut) == text
    assert all(SIZE <= len(piece) <= LONGEST for piece in cut[:-1])
    if pattern not in ONE_WORD.get(name, ()):
        ours = encoding(pattern, ranks)
        assert [i for piece in cut for i in ours.encode_ordinary(piece)] == ours.encode_ordinary(text)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_tokens_of_real_texts_are_those_of_the_whole(pattern, corpora, ranks):
    ours = encoding(pattern, ranks)
    for name, text in corpora.items():
        cut = [i for piece in pieces([text], PATTERNS[pattern]) for i in ours.encode_ordinary(piece)]
        assert cut == ours.encode_ordinary(text), name


PARTS = [
    *"abZAéǅʰ日½1\u0301.,'!-/「 \n\r\t\u00a0\u3000",
    "'s",
    "'LL",
    "12",
    "AB",
    "日A",
    "\r\n",
    ".\n",
    "  ",
    " a",
    " .",
]


@settings(deadline=None, max_examples=1000)
@given(st.lists(st.sampled_from(PARTS), max_size=60).map("".join), st.sampled_from(sorted(PATTERNS)))
def test_of_words_that_are_not_too_long_none_is_cut(text, pattern):
    words = regex.findall(PATTERNS[pattern], text)
    assume(all(len(word) <= 8 for word in [*words, *regex.findall(r"\s+", text)]))
    cut = list(pieces([text], PATTERNS[pattern], 8))
    assert "".join(cut) == text
    assert [word for piece in cut for word in regex.findall(PATTERNS[pattern], piece)] == words


@settings(deadline=None)
@given(st.text(max_size=40).map(lambda s: s * 5000), st.sampled_from([None, *PATTERNS]), st.data())
def test_joined_they_are_the_text_however_it_comes(text, pattern, data):
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=5).map(sorted))
    chunks = [text[start:end] for start, end in pairwise([0, *places, len(text)])]
    cut = list(pieces(chunks, pattern and PATTERNS[pattern]))
    assert "".join(cut) == text
    assert cut == list(pieces(text, pattern and PATTERNS[pattern]))  # a character at a time
    assert all(SIZE <= len(piece) <= LONGEST for piece in cut[:-1])


def test_without_a_pattern_they_are_of_one_size():
    assert [len(piece) for piece in pieces(["a b " * 50_000], None)] == [65536, 65536, 65536, 3392]


def test_where_nothing_is_known_of_words_they_are_one():
    assert list(pieces(["a, b ", "", "c. " * 100_000], WHOLE)) == ["a, b " + "c. " * 100_000]
    assert list(pieces(["", ""], WHOLE)) == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_piece_is_one_piece(pattern):
    for piece in pieces(["some words, in order. " * 10_000], PATTERNS[pattern]):
        assert list(pieces([piece], PATTERNS[pattern])) == [piece]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_word_longer_than_a_piece_is_cut_all_the_same(pattern):
    assert [len(piece) for piece in pieces(["あ" * 600_000], PATTERNS[pattern])] == [LONGEST, LONGEST, 75_712]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_longest_piece_is_not_too_long_for_tiktoken(pattern):
    for unit in (" ", "\n", "a", "A", "日A", "1", ".", "\u0301", "'", "\r\n", "\t \n"):
        text = (unit * LONGEST)[: LONGEST - 1] + "x"
        assert encoding(pattern, BYTES).encode_to_numpy(text, disallowed_special=()).size == len(text.encode()), unit


@pytest.mark.parametrize("pattern", PATTERNS)
def test_tiktoken_splits_at_every_boundary_of_whatever_characters(pattern):
    characters = [chr(i) for i in range(0x110000) if not 0xD800 <= i <= 0xDFFF]
    before = [c for c in characters if BOUNDARY.search(c + ".") and assigned(c + ".", 1)]
    after = [c for c in characters if BOUNDARY.search("a" + c)]
    assert len(before) > 130_000
    assert len(after) > 9000
    across = {bytes([b]) + b".": 256 + b for b in range(256)} | {b"a" + bytes([b]): 512 + b for b in range(256)}
    del across[b"a."]  # twice; the other one shows it
    ours = encoding(pattern, BYTES | {b"a.": 1000} | across)
    for text in ("".join(f" {c}." for c in before), "".join(f" a{c}" for c in after)):
        for start in range(0, len(text), 3 << 14):
            assert ours.encode_to_numpy(text[start : start + (3 << 14)]).max() < 256
