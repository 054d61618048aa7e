import numpy as np
import pytest

from gpt.config import Choice, UserError
from gpt.data.tokenizer import load, with_unknown
from gpt.data.tokenizer.char import Char


def build(train, validation=(), **settings) -> Char:
    """Learned from documents that come a character at a time."""
    config = Choice("gpt.data.tokenizer", "tokenizer").validate({"name": "char", **settings})
    splits = {"train": train, "validation": validation}
    return config.build(lambda split: (iter(text) for text in splits[split]))


def test_ids_are_the_places_among_the_sorted_characters():
    tokenizer = build(["banana日"])
    assert tokenizer.encode("nab日") == [2, 0, 1, 3]
    assert tokenizer.byte_lengths().tolist() == [1, 1, 1, 3]
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (4, None)


def test_characters_of_the_validation_text_have_ids_too():
    assert build(["ba"], ["ac"]).characters == "abc"


@pytest.mark.parametrize(
    "train, validation, end",
    [
        (["ab"], [], None),
        (["ab"], ["b"], None),
        (["a", "b"], [], 2),
        (["a", "b"], ["a"], 2),
        (["ab"], ["a", ""], 2),
        ([], ["ab", "b"], 2),
    ],
)
def test_end_of_text_is_the_last_id_where_a_split_has_several_documents(train, validation, end):
    tokenizer = build(train, validation)
    assert tokenizer.end_of_text == end
    assert tokenizer.vocab_size == 2 + (end is not None)


@pytest.mark.parametrize("train, validation", [([], []), ([""], [""]), (["", ""], [])])
def test_an_empty_text_has_nothing_to_learn(train, validation):
    with pytest.raises(UserError, match=r"^tokenizer=char: the text is empty"):
        build(train, validation, unknown="replace")


def test_the_largest_and_smallest_code_points():
    tokenizer = build(["\0\U0010ffff\ue000\ud7ff"])
    assert tokenizer.encode("\U0010ffff\0\ue000\ud7ff") == [3, 0, 2, 1]
    with pytest.raises(UserError, match=r"'\\ue001' \(U\+E001\) at character 1"):
        tokenizer.encode("\0\ue001")


def test_an_unknown_character_is_told_with_its_name_its_place_and_the_choices():
    with pytest.raises(UserError) as error:
        build(["caf "]).encode("a café")
    assert str(error.value) == (
        "text: 'é' (U+00E9 LATIN SMALL LETTER E WITH ACUTE) at character 5 is none of the 4 that this tokenizer knows; "
        "unknown=skip leaves it out, "
        "unknown=replace needs U+FFFD among them, which training with tokenizer.unknown=replace puts there"
    )


@pytest.mark.parametrize(
    "character, shown",
    [
        ("\n", r"'\\n' \(U\+000A\)"),
        ("\u2028", r"'\\u2028' \(U\+2028 LINE SEPARATOR\)"),
        ("日", r"'日' \(U\+65E5 CJK UNIFIED IDEOGRAPH-65E5\)"),
        ("😀", r"'😀' \(U\+1F600 GRINNING FACE\)"),
        ("'", r"\"'\" \(U\+0027 APOSTROPHE\)"),
    ],
)
def test_any_character_is_shown_on_one_line(character, shown):
    with pytest.raises(UserError, match=f"^text: {shown} at character 70000 ") as error:
        build(["ab"]).encode("ab" * 35_000 + character)  # the place is one in the whole text, not in a piece
    assert "\n" not in str(error.value)


def test_what_becomes_of_unknown_characters():
    tokenizer = build(["abc\ufffd"])  # the text itself has it
    assert tokenizer.encode("aébü", "skip") == [0, 1]
    assert tokenizer.encode("aébü", "replace") == [0, 3, 1, 3]
    assert tokenizer.decode(tokenizer.encode("aébü", "replace")) == "a\ufffdb\ufffd"
    with pytest.raises(UserError, match=r"unknown=skip leaves it out, unknown=replace puts U\+FFFD in its place$"):
        tokenizer.encode("aébü")


@pytest.mark.parametrize("unknown, ids", [("skip", [0, 1]), ("replace", [0, 2, 1])])
def test_it_is_trained_for_a_choice_that_an_argument_overrides(unknown, ids, tmp_path):
    build(["ab"], unknown=unknown).save(tmp_path)
    tokenizer = load(tmp_path)
    assert tokenizer.encode("aéb") == ids
    assert tokenizer.encode("aéb", "skip") == [0, 1]
    with pytest.raises(UserError, match="'é'"):
        tokenizer.encode("aéb", "error")


def test_replace_adds_its_character_once():
    assert build(["ba"], unknown="replace").characters == "ab\ufffd"
    assert build(["ba\ufffd"], unknown="replace").characters == "ab\ufffd"


def test_replacing_without_the_character_is_refused_where_it_is_needed():
    tokenizer = build(["ab"])
    assert tokenizer.encode("ab", "replace") == [0, 1]
    with pytest.raises(UserError, match=r"unknown=replace needs U\+FFFD .*training with tokenizer\.unknown=replace"):
        tokenizer.encode("é", "replace")


def test_half_of_a_surrogate_pair_in_a_document_is_refused():
    with pytest.raises(UserError, match=r"U\+DC80 at character 2 is half of a surrogate pair"):
        build(["ab\udc80"])


def test_a_wrong_choice_is_refused():
    with pytest.raises(UserError, match=r"^tokenizer\.unknown: expected 'error', 'skip' or 'replace', got 'drop'$"):
        build(["a"], unknown="drop")


def test_a_piece_gives_an_array():
    ids = build(["abc"]).encode_piece("cab")
    assert ids.dtype == np.uint32
    assert ids.tolist() == [2, 0, 1]
    assert build(["abc"]).encode_piece("").tolist() == []


def test_the_same_characters_with_another_way_for_unknown_ones():
    kept = with_unknown(build(["ab"]), "skip")
    assert kept.encode("axb") == [0, 1]
    with pytest.raises(UserError, match=r"tokenizer\.unknown: unknown is replace, and U\+FFFD is not among"):
        with_unknown(build(["ab"]), "replace")
    known = build(["ab"])
    assert with_unknown(known, "error") is known
