import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gpt.insight.data.advice import (
    RULES,
    advise,
    duplicates,
    lines,
    long_line,
    repetition,
    strangers,
    suggested_size,
    troubles,
    validation,
)
from gpt.insight.data.advice import vocabulary as vocabulary_rule

LONG = "a line that is long enough to be no accident at all"
TRAIN = ["some words of a text that may be seen often enough, and a few more of them" * 40]
VALIDATION = ["other words of a text that many of them may not be as seen often" * 2]


@pytest.fixture
def good(looked):
    """A text of which nothing is to be said: 2,961 tokens, more than the tiny model has parameters to each."""
    return replace(looked(TRAIN, VALIDATION, "steps=400"), parameters=2000)


def told(rule, look):
    return [text for _, text in rule(look)]


def test_nothing_to_say_of_a_good_text(good):
    assert 1 <= good.exposure.epochs < 4
    assert advise(good) == []


def test_no_validation(good, looked):
    (text,) = told(validation, looked(TRAIN))
    assert "no validation text" in text
    assert "hold some out" in text


def test_a_validation_split_of_few_windows(good, looked):
    assert "fills 7 windows of 8 tokens" in told(validation, looked(TRAIN, ["x" * 56]))[0]
    assert told(validation, looked(TRAIN, ["x" * 57])) == []


@pytest.mark.parametrize(
    "steps, epochs, said",
    [
        (92, 0.5, "sees 50 % of the text, which is fine; all of it is steps=185"),
        (185, 1.0, None),
        (2950, 15.99, None),
        (2960, 16.04, "is seen 16 times.*take steps=2960 "),
        (None, None, "depends on the budget: 185 steps see each once"),
    ],
)
def test_how_often_a_text_is_seen(good, steps, epochs, said):
    exposure = replace(good.exposure, sequences=369, steps=steps)
    assert exposure.epochs == pytest.approx(epochs, abs=0.01) if epochs else exposure.epochs is None
    texts = told(repetition, replace(good, exposure=exposure))
    assert len(texts) == (said is not None)
    if said:
        assert re.search(said, texts[0])


def test_a_model_larger_than_its_text(good):
    def said(parameters, steps):
        exposure = replace(good.exposure, sequences=100, steps=steps)
        return told(repetition, replace(good, parameters=parameters, exposure=exposure))

    assert "3,000 parameters for 2,961 tokens" in said(3000, steps=201)[0]
    assert said(2961, steps=201) == []
    assert said(3000, steps=200) == [], "four times is almost as good as new text"


def test_a_vocabulary_larger_than_its_text(looked):
    words = " ".join(f"{i * i * i:x}" for i in range(100, 4000)) * 2
    look = looked([words], [], "tokenizer=bpe", "tokenizer.vocab_size=2000")
    (text,) = told(vocabulary_rule, look)
    assert "tokens occur fewer than 10 times" in text
    assert "tokenizer.vocab_size=512." in text
    assert told(vocabulary_rule, looked(["x" * 99])) == [], "bytes that never occur cost nothing"


def test_lines_that_may_be_documents(looked):
    names = "emma\n" * 100
    (text,) = told(lines, looked([names]))
    assert "All 100 lines are short." in text
    assert r"'dataset.separator=\n'" in text
    assert told(lines, looked(["emma\n" * 99])) == []
    assert told(lines, looked([names + "x" * 41])) == []
    assert told(lines, looked([names, names])) == [], "documents that are there already"


def test_line_ends_that_the_model_would_write(looked):
    (text,) = told(lines, looked(["a\r\nb\r\n" * 9]))
    assert r"dataset.newline=lf (dataset=text) makes it \n." in text
    assert told(lines, looked(["a\r\nb\n" * 9])) == [], "mixed ones are trouble, told elsewhere"
    assert told(lines, looked(["ab" * 9])) == []


@pytest.mark.parametrize("often, size", [(3, 512), (1023, 512), (1024, 1024), (2047, 1024)])
def test_the_vocabulary_that_is_proposed_is_filled(good, often, size):
    use = replace(good.use, counts=np.array([10] * often + [9] * 3000))
    tokenizer = SimpleNamespace(vocab_size=len(use.counts))
    look = replace(good, use=use, prepared=replace(good.prepared, tokenizer=tokenizer))
    assert suggested_size(look) == size


def test_characters_that_bloat_a_vocabulary(looked):
    kanji = "".join(chr(0x4E00 + i) for i in range(600))
    (text,) = told(vocabulary_rule, looked([kanji * 9], [], "tokenizer=char"))
    assert "600 of the 600 characters of the vocabulary" in text
    assert "tokenizer=bpe" in text
    assert told(vocabulary_rule, looked([kanji * 10], [], "tokenizer=char")) == []


def test_validation_text_that_training_knows(looked):
    (text,) = told(duplicates, looked([LONG + "\nmore"], [LONG + "\nelse"]))
    assert text.startswith("91.1 % of the validation text")  # 51 of 56 bytes
    assert told(duplicates, looked([LONG + "\nmore"], [LONG + "\n" + "x" * 3000])) == []
    (text,) = told(duplicates, looked(["short one", "and more"], ["short one", "x" * 27]))
    assert text.startswith("25.0 % of the validation text")  # 9 of 36 bytes, and no line that is compared
    assert told(duplicates, looked(["some text of mine"])) == []


def test_characters_that_training_never_shows(good, looked):
    (text,) = told(strangers, looked(["abc" * 9], ["abzzy\n" * 2]))
    assert text.startswith("3 characters of validation, 8 in all, never stand in training (z ↵ y)")
    assert told(strangers, good) == []


def test_a_huge_line(looked):
    (text,) = told(long_line, looked(["x" * 100_001]))
    assert "100,001 characters" in text
    assert told(long_line, looked(["x" * 100_000])) == []


def test_trouble_is_told_with_its_remedy(looked):
    (text,) = told(troubles, looked(["one<|endoftext|>two, and some more"]))
    assert text.startswith("Marks such as <|endoftext|>, 1 in all: ")
    assert "dataset.separator" in text


def test_warnings_come_first(looked):
    said = advise(looked(["x" * 100_001, "\0"], ["z" * 9]))
    assert [warns for warns, _ in said] == sorted((warns for warns, _ in said), reverse=True)
    assert len({warns for warns, _ in said}) == 2


def test_each_sentence_ends_and_says_what_to_do(looked):
    for look in (looked(["x" * 100_001, "\0\x01\ufeff\ufffd\r"], ["z" * 9]), looked(TRAIN, (), "budget=5min")):
        for _, text in advise(look):
            assert text.endswith(".")
            assert "\n" not in text
    assert len(RULES) == 8
