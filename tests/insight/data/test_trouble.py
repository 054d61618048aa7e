import pytest

from gpt.insight.data.characters import count
from gpt.insight.data.trouble import (
    CONTROL,
    ENTITIES,
    MARK,
    MARKS,
    MISREAD,
    NUL,
    PRIVATE,
    REPLACED,
    kind_of,
    sightings,
)


def seen(text):
    return {kind: (many, start) for kind, many, start in sightings(text, count(text))}


@pytest.mark.parametrize(
    "text, kind, many, start",
    [
        ("ab\ufffdc\ufffd", REPLACED, 2, 2),
        ("a\0", NUL, 1, 1),
        ("a\x1b[0m", CONTROL, 1, 1),
        ("a\x85b", CONTROL, 1, 1),
        ("a\ufeff", MARK, 1, 1),
        ("\ue000", PRIVATE, 1, 0),
        ("\U0010ffff", PRIVATE, 1, 0),
        ("x &amp; y&#39;z&#x1F;", ENTITIES, 3, 2),
        ("one<|endoftext|>two<|im_end|>", MARKS, 2, 3),
        ("l’été “naïf” £5".encode().decode("latin-1"), MISREAD, 7, 1),
        ("l’été “naïf” £5".encode().decode("cp1252", "replace"), MISREAD, 7, 1),
        ("ねこカナ".encode().decode("latin-1"), MISREAD, 4, 0),
    ],
)
def test_each_kind_is_seen(text, kind, many, start):
    assert seen(text)[kind] == (many, start)


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\r\nof two lines\n",
        "“CAFÉ” – São Paulo, MANHÃ, Âge, ça, à «é», £5, 20 °C, naïve… Ärger",
        "日本語\u3000と🙂。",
        "AT&T; R&D & more; a|b <| |> <|>",
        "",
    ],
)
def test_right_text_is_no_trouble(text):
    assert seen(text) == {}


def test_what_a_character_is_a_sign_of():
    assert [kind_of(ord(c)) for c in "a \t\n\r日"] == [None] * 6
    assert kind_of(0xD800) is PRIVATE
