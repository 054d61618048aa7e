import pytest

from gpt.insight.data.trouble import LONE_CR, MARKS, MISREAD, MIXED_ENDS, REPLACED

LONG = "a line that is long enough to be no accident at all"  # 51 characters


def test_both_splits_and_what_they_share(looked):
    look = looked(["first text of mine", LONG], [LONG, "é"])
    assert list(look.splits) == ["train", "validation"]
    assert (look.train.lengths.count, look.validation.lengths.count) == (2, 2)
    assert (look.tokens_of("train"), look.tokens_of("validation")) == (18 + 51 + 2, 51 + 2 + 2)
    assert (look.overlap.documents, look.overlap.document_bytes) == (1, 51)
    assert (look.overlap.lines, look.overlap.line_bytes) == (1, 51)
    assert look.counts[ord("é")] == 1
    assert look.counts[ord("f")] == 2
    assert look.use.counts.sum() == 71


def test_without_validation(looked):
    look = looked(["some text of mine"])
    assert (look.validation, look.overlap) == (None, None)
    assert list(look.splits) == ["train"]
    assert look.tokens_of("validation") == 0


def test_parameters_are_those_of_the_model(looked):
    few, many = (looked(["x" * 40], [], f"model.n_layer={n}").parameters for n in (1, 3))
    one_block = (many - few) / 2
    assert few - one_block == pytest.approx(257 * 16, abs=64)  # the table, and norms


def test_only_what_is_trained_on_is_read(looked):
    look = looked(["0123456789" * 4, "never read"], [], max_tokens=30)
    assert look.train.characters == 30
    assert look.train.lengths.count == 1


def test_trouble_of_both_splits_is_one(looked):
    look = looked(["fine text of mine\ufffd, and more\n\r\n"], ["a\ufffdb", "\ufffd<|endoftext|>", "a\rb", "ten more"])
    troubles = {trouble.kind: trouble for trouble in look.troubles}
    assert set(troubles) == {REPLACED, MARKS, LONE_CR, MIXED_ENDS}
    assert (troubles[REPLACED].count, troubles[REPLACED].split) == (3, "train")
    assert troubles[REPLACED].place.document == 1
    assert (troubles[MARKS].split, troubles[MARKS].place.document) == ("validation", 2)
    assert (troubles[MIXED_ENDS].count, troubles[MIXED_ENDS].place) == (1, None)


def test_line_ends_of_one_kind_are_no_trouble(looked):
    assert looked(["one line\r\nand another\r\n"]).troubles == []
    assert looked(["one line\nand another\n"]).troubles == []


def test_what_may_be_meant_is_not_told(looked):
    assert looked(["Ã© " * 2 + "x" * 20]).troubles == []
    assert [trouble.kind for trouble in looked(["Ã© " * 3 + "x" * 20]).troubles] == [MISREAD]
