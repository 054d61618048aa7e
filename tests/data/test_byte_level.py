import copy

import pytest
import regex
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpt.data.byte_level import GPT2, KNOWN, LLAMA3, checked, pattern_of
from gpt.data.encoding import PRINTABLE
from gpt.data.pieces import WHOLE, pieces

BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
WORDS = {**BYTES, "use_regex": True}
SPLIT = {"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated", "invert": False}
GOOD = {
    "added_tokens": [{"content": "<s>", "special": True, "lstrip": True}],
    "normalizer": None,
    "pre_tokenizer": WORDS,
    "model": {"vocab": {token: i for i, token in enumerate(PRINTABLE.values())}, "merges": []},
}


def changed(**parts):
    return {**copy.deepcopy(GOOD), **parts}


def model(**parts):
    return changed(model={**GOOD["model"], **parts})


def sequence(*steps):
    return changed(pre_tokenizer={"type": "Sequence", "pretokenizers": list(steps)})


@pytest.mark.parametrize(
    "content, told",
    [
        ({}, "model: this setting is required"),
        (model(type="Unigram"), "model.type: expected 'BPE', got 'Unigram'"),
        (model(byte_fallback=True), "it has bytes for unknown characters only, as SentencePiece's; only byte-level"),
        (model(dropout=0.1), "model.dropout: expected none.*, got 0.1"),
        (model(continuing_subword_prefix="##"), "model.continuing_subword_prefix: expected .*, got '##'"),
        (model(vocab={"a": 1}), "the 256 bytes must be among the tokens"),
        (model(vocab={**GOOD["model"]["vocab"], "ab": 0}), "two tokens have the same id"),
        (model(vocab={**GOOD["model"]["vocab"], "ab": 1 << 22}), "model.vocab.ab: expected less than 4194304"),
        (model(vocab={**GOOD["model"]["vocab"], "ab": -1}), "model.vocab.ab: expected greater than or equal to 0"),
        (changed(normalizer={"type": "Lowercase"}), "its normalizer, 'Lowercase', changes the text"),
        (changed(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFKC"}]}), "'NFKC'"),
        (changed(normalizer={"type": "Sequence", "normalizers": "NFC"}), "normalizers: expected a list of objects"),
        (changed(pre_tokenizer={"type": "Metaspace"}), "it splits text by 'Metaspace' in the end; only byte-level"),
        (changed(pre_tokenizer=None), "it splits text by null in the end"),
        (changed(pre_tokenizer=[]), "pre_tokenizer: expected .* got \\[\\]"),
        (changed(pre_tokenizer={**WORDS, "add_prefix_space": True}), "it puts a space before the text"),
        (sequence(), "it splits text by null in the end"),
        (sequence({"type": "Whitespace"}, BYTES), "it splits text by 'Whitespace', which may leave some of it out"),
        (sequence({**SPLIT, "behavior": "Removed"}, BYTES), "it splits text by 'Split', which may leave some of it"),
        (changed(added_tokens=[{"content": "a", "rstrip": True}]), "its token 'a' takes the space beside it"),
    ],
)
def test_what_would_not_give_every_text_back_is_refused(content, told):
    with pytest.raises(ValueError, match=told):
        checked(content)


@pytest.mark.parametrize(
    "content, pattern",
    [
        (GOOD, GPT2),
        (changed(normalizer={"type": "NFC"}), GPT2),
        (changed(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False}), GPT2),
        (changed(pre_tokenizer=BYTES), WHOLE),
        (sequence(SPLIT, BYTES), LLAMA3),
        (sequence({**SPLIT, "behavior": "Removed", "invert": True}, BYTES), LLAMA3),
        (sequence({**SPLIT, "behavior": "MergedWithNext"}, BYTES), WHOLE),
        (sequence({**SPLIT, "invert": True}, BYTES), WHOLE),
        (sequence(SPLIT, WORDS), WHOLE),
        (sequence({**SPLIT, "pattern": {"Regex": "[a-z]+"}}, BYTES), WHOLE),
        (sequence({**SPLIT, "pattern": {"String": " "}}, BYTES), WHOLE),
        (sequence({"type": "Digits", "individual_digits": True}, WORDS), WHOLE),
        (changed(added_tokens=[{"content": "  "}, {"content": "<s>", "special": True}]), GPT2),
        (changed(added_tokens=[{"content": "<think>"}]), WHOLE),  # a boundary is in it
        (changed(added_tokens=[{"content": "x", "single_word": True}]), WHOLE),
    ],
)
def test_text_is_cut_only_where_that_is_known_to_change_nothing(content, pattern):
    assert pattern_of(checked(content)) == pattern


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from([*"abA日1½\u0301.,'!-/\n \r\t\u3000", "'s", "12", ".\n", " a"]), max_size=60).map("".join)
)
def test_no_word_of_a_known_pattern_is_cut(text):
    for pattern in KNOWN:
        words = regex.findall(pattern, text)
        assert "".join(words) == text
        assume(all(len(word) <= 8 for word in [*words, *regex.findall(r"\s+", text)]))
        assert [word for piece in pieces([text], pattern, 8) for word in regex.findall(pattern, piece)] == words
