from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from gpt.config import UserError
from gpt.data.encoding import PATTERNS, PRINTABLE, Encoding, from_printable, saved_pattern, saved_tokens, to_printable

BYTES = [bytes([i]) for i in range(256)]


class Ours(Encoding):
    name: ClassVar[str] = "ours"


def test_the_neighbours_whose_union_has_the_lowest_id_are_merged():
    ours = Ours([*BYTES, b"ab", b"", b"bc", b"abc", b""], "gpt2", end_of_text=257)
    assert ours.encode("abc") == [259]  # a bc would take the later 258
    assert ours.encode("bcd") == [258, ord("d")]
    assert ours.encode("ab ab") == [256, 32, 256]
    assert ours.decode([256, 257, 260, 258]) == "abbc"
    assert (ours.vocab_size, ours.end_of_text) == (261, 257)
    assert ours.byte_lengths().tolist() == [1] * 256 + [2, 0, 2, 3, 0]


def test_no_token_reaches_across_words():
    ours = Ours([*BYTES, b"a b", b"a ", b" b", b""], "gpt2", end_of_text=259)
    assert ours.encode("a b") == [ord("a"), 258]


def test_the_text_of_a_special_token_is_text():
    text = "<|endoftext|><|fim_prefix|>"
    assert Ours([*BYTES, b""], "gpt2", 256).encode(text) == list(text.encode())


@pytest.mark.parametrize(
    "tokens, end_of_text, told",
    [
        ([*BYTES, b"ab", b"ab", b""], 258, "a token stands twice"),
        ([*BYTES[1:], b""], 255, "the 256 bytes must be among the tokens"),
        ([], 0, "the 256 bytes must be among the tokens"),
        ([*BYTES, b""], 255, "end-of-text must be the id of an empty token, 255 is not"),
        ([*BYTES, b""], 257, "end-of-text must be the id of an empty token, 257 is not"),
        ([*BYTES, b""], -1, "end-of-text must be the id of an empty token, -1 is not"),
    ],
)
def test_tokens_that_are_none(tokens, end_of_text, told):
    with pytest.raises(ValueError, match=told):
        Ours(tokens, "gpt2", end_of_text)


def test_a_piece_gives_an_array_in_any_thread():
    ours = Ours([*BYTES, b"ab", b"abab", b""], "modern", 258)
    ids = ours.encode_piece("abababx")
    assert ids.dtype == np.uint32
    assert ids.tolist() == [257, 256, ord("x")]
    assert ours.encode_piece("").tolist() == []
    texts = [f"ab{i} " * 5000 for i in range(16)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ours.encode_piece, texts))
    assert all((ids == ours.encode_piece(text)).all() for text, ids in zip(texts, found, strict=True))


def test_half_of_a_surrogate_pair_is_told_by_its_place_in_the_whole_text():
    with pytest.raises(UserError, match=r"^text: U\+D800 at character 300003 is half of a surrogate pair"):
        Ours([*BYTES, b""], "gpt2", 256).encode("one " * 75_000 + "abc\ud800")


def test_the_printable_form_is_the_one_of_gpt2():
    assert sorted(PRINTABLE) == list(range(256))
    assert set(PRINTABLE.values()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert to_printable(b" the\n\x00\x7f\xa0\xad\xff") == "ĠtheĊĀġłŃÿ"
    assert from_printable("ĠtheĊĀġłŃÿ") == b" the\n\x00\x7f\xa0\xad\xff"
    assert [from_printable(to_printable(byte)) for byte in BYTES] == BYTES


@pytest.mark.parametrize(
    "wrong", ["a b", "a\n", "\x00", "\x7f", "\xa0", "\xad", "\u0144", "日", "\ud800", "\U0001f600"]
)
def test_what_stands_for_no_byte_is_refused(wrong):
    with pytest.raises(ValueError, match="stands for no byte"):
        from_printable(wrong)


@pytest.mark.parametrize("tokens", [None, "abc", {"a": 1}, ["a", 5], ["a", None], [True], [["a"]]])
def test_saved_tokens_are_strings(tokens):
    with pytest.raises(ValueError, match="tokens must be a list of strings"):
        saved_tokens({"tokens": tokens})
    assert saved_tokens({"tokens": ["Ġa", ""]}) == [b" a", b""]


@pytest.mark.parametrize("pattern", [None, "(a+)+$", ["gpt2"], {}, 1, PATTERNS["gpt2"]])
def test_a_pattern_is_named_never_given(pattern):
    with pytest.raises(ValueError, match="unknown pattern"):
        saved_pattern({"pattern": pattern})
