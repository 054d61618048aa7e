"""Names of tokens, of Japanese too."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.data.tokenizer import Tokenizer
from gpt.data.tokenizer.byte import Byte
from gpt.insight.inspect.labels import next_label, token_labels

SENTENCE = "私は機械学習が大好きです"


def cut(*tokens):
    """Labels of a text that is cut into these tokens."""
    return token_labels(Tokenizer(tokens, None), range(len(tokens)))


def test_the_sentence_in_each_tokenizer(tokenizers):
    labels = {name: token_labels(t, t.encode(SENTENCE)) for name, t in tokenizers.items()}
    assert labels["char"] == list(SENTENCE)
    assert labels["byte"] == [f"{c} {part}/3" for c in SENTENCE for part in (1, 2, 3)]
    assert all(label[0] in SENTENCE for label in labels["bpe"])
    assert {label[0] for label in labels["bpe"]} == set(SENTENCE)


def test_parts_of_characters_whole_ones_and_both():
    watashi, ha = "私".encode(), "は".encode()
    assert cut(watashi[:2], watashi[2:]) == ["私 1-2/3", "私 3/3"]
    assert cut(watashi[:1], watashi[1:] + ha[:1], ha[1:]) == ["私 1/3", "私 2-3/3 は 1/3", "は 2-3/3"]
    assert cut(b"a" + watashi[:1], watashi[1:] + b"b") == ["a 私 1/3", "私 2-3/3 b"]
    assert cut("私は".encode(), b"a b\n") == ["私は", "a·b↵"]


def test_bytes_that_are_no_character_and_end_of_text():
    assert cut(b"\xe7", b"x") == ["<E7>", "x"]
    assert token_labels(Byte(), [256, 65]) == ["<end of text>", "A"]


def test_a_token_that_may_come_next():
    assert [next_label(Byte(), i) for i in (65, 32, 10, 0xE7, 256)] == ["A", "·", "↵", "<E7>", "<end of text>"]


@settings(deadline=None)
@given(st.text(max_size=20), st.data())
def test_a_label_for_each_token_however_a_text_is_cut(text, data):
    text = text.encode("utf-8", "ignore")
    places = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)))) & set(range(1, len(text))))
    tokens = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    labels = cut(*tokens)
    assert len(labels) == len(tokens)
    assert all(label.isprintable() and label for label in labels)


@pytest.mark.parametrize("sign, label", [("\t", "⇥"), ("\r", "←"), ("\u3000", "□"), ("\u200b", "<U+200B>")])
def test_what_is_not_seen_has_a_sign(sign, label):
    assert cut(sign.encode()) == [label]
