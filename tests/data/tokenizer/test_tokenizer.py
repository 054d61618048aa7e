"""What every tokenizer promises, and files that are no tokenizer."""

import functools
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpt.config import Choice, UserError, variant_names
from gpt.data.encoding import to_printable
from gpt.data.tokenizer import FILE, load

NAMES = variant_names("gpt.data.tokenizer")
TEXTS = [
    "the people of the United States ",
    "don't we? 日本語の文章。日本語\r\n\r\n",
    "naïve café 😀😀 12345 12345",
] * 3
TRICKY = [
    "", " ", "  \n\n  ", "\r", "\r\n", "\n\r", "\0", "\u2028\u2029\u0085\x0b\x0c\x1c", "\ufeffBOM",
    "<|endoftext|>", "a" * 5000,
    "👩‍👩‍👧‍👦", "e\u0301\u0302", "שלום", "１２３", "'s 'LL", "\t\tif x:\n\t\t\treturn",
    "私は機械学習が大好きです", "\U0010ffff\ud7ff\ue000",
]  # fmt: skip


NEEDED: dict[str, dict] = {}
"""The settings that a variant cannot do without."""


def build(name, documents=TEXTS, **settings):
    config = Choice("gpt.data.tokenizer", "tokenizer").validate({"name": name, **NEEDED.get(name, {}), **settings})
    return config.build(lambda split: ([text] for text in documents if split == "train"))


@pytest.fixture(params=NAMES)
def name(request):
    """Of a variant; what it needs is there."""
    if request.param == "named":
        request.getfixturevalue("published")
    if request.param == "hugging_face":
        NEEDED[request.param] = {"path": str(request.getfixturevalue("model_folder"))}
    return request.param


@functools.cache
def learned(name):
    return build(name)


def knowing(name, text):
    """The variant's tokenizer; `char` is learned from the very text."""
    return build(name, [*TEXTS, text]) if name == "char" else learned(name)


@pytest.mark.parametrize("text", TRICKY)
def test_decoding_gives_the_text_back(name, text):
    tokenizer = knowing(name, text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.byte_lengths()[ids].sum() == len(text.encode())


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text() | st.text(st.sampled_from("\u2028\u0085\0\r\n\t 😀é日a'")))
def test_decoding_gives_any_text_back(name, text):
    tokenizer = knowing(name, text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(tokenizer.decode_bytes([i]) for i in ids) == text.encode()


def test_decoding_gives_every_corpus_back(name, corpora):
    for file, text in corpora.items():
        tokenizer = knowing(name, text)
        assert tokenizer.decode_bytes(tokenizer.encode(text)) == text.encode(), file


@pytest.mark.parametrize("character", ["a", " ", "\n", "あ", "1"])
def test_a_million_equal_characters(name, character):
    text = character * 1_000_000 + "z"
    tokenizer = knowing(name, text)
    assert tokenizer.decode_bytes(tokenizer.encode(text)) == text.encode()


def test_ids_are_ints_within_the_vocabulary(name):
    text = "".join(TRICKY)
    tokenizer = knowing(name, text)
    ids = tokenizer.encode(text)
    assert all(type(i) is int for i in ids)
    assert 0 <= min(ids) <= max(ids) < tokenizer.vocab_size


def test_the_ids_of_a_piece_are_an_array_in_whatever_thread(name):
    text = "".join(TRICKY)
    tokenizer = knowing(name, text)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(tokenizer.encode_piece, [text] * 16))
    for ids in found:
        assert ids.dtype.kind == "u"
        assert ids.tolist() == tokenizer.encode(text)


@pytest.mark.parametrize("unknown", [None, "error", "skip", "replace"])
def test_known_text_is_the_same_whatever_becomes_of_unknown_text(name, unknown):
    text = "".join(TRICKY)
    tokenizer = knowing(name, text)
    assert tokenizer.encode(text, unknown) == tokenizer.encode(text)


def test_end_of_text_stands_for_no_bytes_and_is_never_encoded(name):
    tokenizer = knowing(name, "a<|endoftext|>bc")
    end = tokenizer.end_of_text
    assert end not in tokenizer.encode("a<|endoftext|>b")
    assert tokenizer.decode([*tokenizer.encode("ab"), end, *tokenizer.encode("c")]) == "abc"
    lengths = tokenizer.byte_lengths()
    assert lengths.dtype == np.int64
    assert lengths.shape == (tokenizer.vocab_size,)
    assert np.flatnonzero(lengths == 0).tolist() == [end]


def test_half_a_character_is_shown_as_one_replacement(name):
    if name == "char":
        pytest.skip("its tokens are whole characters")
    tokenizer = learned(name)
    ids = [tokenizer.tokens.index(bytes([byte])) for byte in "日".encode()[:2]]
    assert tokenizer.decode_bytes(ids) == b"\xe6\x97"
    assert tokenizer.decode(ids) == "\ufffd"


@pytest.mark.parametrize("wrong", [-1, 10**6])
def test_ids_outside_the_vocabulary_are_named(name, wrong):
    tokenizer = learned(name)
    with pytest.raises(ValueError, match=f"token id {wrong} is outside the vocabulary of {tokenizer.vocab_size}"):
        tokenizer.decode([0, wrong])


def test_half_of_a_surrogate_pair_is_refused(name):
    for encode in (learned(name).encode, learned(name).encode_piece):
        with pytest.raises(UserError, match=r"^text: U\+DC80 at character 2 is half of a surrogate pair"):
            encode("th\udc80")


def test_saved_and_loaded_it_is_the_same(name, tmp_path):
    tokenizer = knowing(name, "".join(TRICKY))
    tokenizer.save(tmp_path)
    again = load(tmp_path)
    assert type(again) is type(tokenizer)
    assert (again.vocab_size, again.end_of_text) == (tokenizer.vocab_size, tokenizer.end_of_text)
    assert (again.pattern, list(again.tokens)) == (tokenizer.pattern, list(tokenizer.tokens))
    assert [again.encode(text) for text in TRICKY] == [tokenizer.encode(text) for text in TRICKY]
    before = (tmp_path / FILE).read_bytes()
    again.save(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_built_twice_it_is_saved_as_the_same_file(name, tmp_path):
    files = []
    for _ in range(2):
        build(name).save(tmp_path)
        files.append((tmp_path / FILE).read_bytes())
    assert files[0] == files[1]


GOOD = {"version": 1, "name": "byte"}
BPE = {"version": 1, "name": "bpe", "pattern": "gpt2", "tokens": []}
CHAR = {"version": 1, "name": "char", "characters": "ab", "end_of_text": False, "unknown": "error"}
ALL = [to_printable(bytes([i])) for i in range(256)]
NAMED = {"version": 1, "name": "named", "encoding": "x", "pattern": "o200k", "end_of_text": 256, "tokens": [*ALL, ""]}
LIBRARY = {
    "added_tokens": [{"id": 256, "content": "<|endoftext|>", "special": True, "normalized": False, "single_word": False,
                      "lstrip": False, "rstrip": False}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
    "model": {"type": "BPE", "vocab": {**{token: i for i, token in enumerate(ALL)}, "ab": 257}, "merges": [["a", "b"]]},
}  # fmt: skip
HUGGING_FACE = {"version": 1, "name": "hugging_face", "end_of_text": "<|endoftext|>", "tokenizer": LIBRARY}


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "no JSON text"),
        (b"\x80\x04\x95\x0c", "no JSON text"),
        (b"{" * 100_000, "no JSON text"),
        (b"[" * 100_000, "no JSON text"),
        (b'{"version": 1, "name": "by', "no JSON text"),
        (b"[1, 2]", "a JSON object is expected"),
        (b"null", "a JSON object is expected"),
        ({}, "format version None, this program reads version 1"),
        ({**GOOD, "version": 2}, "format version 2, this program reads version 1"),
        ({**GOOD, "version": "1"}, "format version '1', this program reads version 1"),
        ({**GOOD, "version": "x" * 10_000}, "format version 'xxx"),
        ({"version": 1}, "no tokenizer named None; there are bpe, byte, char, hugging_face, named"),
        ({**GOOD, "name": "os"}, "no tokenizer named 'os'; there are bpe, byte, char, hugging_face, named"),
        ({**GOOD, "name": "../byte"}, "no tokenizer named '../byte'"),
        ({**GOOD, "name": "byte\nbpe"}, "no tokenizer named 'byte\\nbpe'"),
        ({**GOOD, "name": ["byte"]}, "no tokenizer named ['byte']"),
        ({**GOOD, "_target_": "os.system"}, "the tokenizer is damaged: unknown key '_target_'"),
        (BPE, "the tokenizer is damaged: the 256 bytes must be among the tokens"),
        ({**BPE, "tokens": 5}, "the tokenizer is damaged: tokens must be a list of strings"),
        ({**BPE, "tokens": ["a", None]}, "the tokenizer is damaged: tokens must be a list of strings"),
        ({**BPE, "tokens": ["a", "a"]}, "the tokenizer is damaged: a token stands twice"),
        ({**BPE, "tokens": ["a\n"]}, "the tokenizer is damaged: '\\n' stands for no byte"),
        ({**BPE, "tokens": ["\ud800"]}, "the tokenizer is damaged: '\\ud800' stands for no byte"),
        ({**BPE, "pattern": "(a+)+$"}, "the tokenizer is damaged: unknown pattern '(a+)+$'"),
        ({**BPE, "pattern": None}, "the tokenizer is damaged: unknown pattern None"),
        ({**BPE, "more": 1}, "the tokenizer is damaged: the keys pattern and tokens are expected"),
        ({"version": 1, "name": "bpe"}, "the tokenizer is damaged: the keys pattern and tokens are expected"),
        ({**BPE, "tokens": [*ALL, ""]}, "the tokenizer is damaged: there is an empty token"),
        ({"version": 1, "name": "char"}, "the tokenizer is damaged: the keys characters, end_of_text and unknown are"),
        ({**CHAR, "more": 1}, "the tokenizer is damaged: the keys characters, end_of_text and unknown are expected"),
        ({**CHAR, "characters": ["a"]}, "the tokenizer is damaged: characters must be a string"),
        ({**CHAR, "characters": ""}, "the tokenizer is damaged: there must be characters, in the order"),
        ({**CHAR, "characters": "ba"}, "the tokenizer is damaged: there must be characters, in the order"),
        ({**CHAR, "characters": "aa"}, "the tokenizer is damaged: there must be characters, in the order"),
        ({**CHAR, "characters": "a\ud800"}, "the tokenizer is damaged: '\\ud800' is no character"),
        ({**CHAR, "end_of_text": 0}, "the tokenizer is damaged: end_of_text must be true or false, not 0"),
        ({**CHAR, "end_of_text": None}, "the tokenizer is damaged: end_of_text must be true or false, not None"),
        ({**CHAR, "unknown": "drop"}, "the tokenizer is damaged: unknown must be one of error, skip, replace, not 'd"),
        ({**CHAR, "unknown": ["skip"]}, "the tokenizer is damaged: unknown must be one of error, skip, replace, not"),
        ({**CHAR, "unknown": "replace"}, "the tokenizer is damaged: unknown is replace, and U+FFFD is not among"),
        ({**NAMED, "more": 1}, "the tokenizer is damaged: the keys encoding, pattern, end_of_text and tokens are"),
        ({**NAMED, "encoding": 5}, "the tokenizer is damaged: 5 is no name of an encoding"),
        ({**NAMED, "encoding": "a\nb"}, "the tokenizer is damaged: 'a\\nb' is no name of an encoding"),
        ({**NAMED, "pattern": "(a+)+$"}, "the tokenizer is damaged: unknown pattern '(a+)+$'"),
        ({**NAMED, "end_of_text": True}, "the tokenizer is damaged: end_of_text must be an id, not True"),
        ({**NAMED, "end_of_text": 256.0}, "the tokenizer is damaged: end_of_text must be an id, not 256.0"),
        ({**NAMED, "end_of_text": 255}, "the tokenizer is damaged: end-of-text must be the id of an empty token"),
        ({**NAMED, "end_of_text": 10**30}, "the tokenizer is damaged: end-of-text must be the id of an empty token"),
        ({**HUGGING_FACE, "more": 1}, "the tokenizer is damaged: the keys end_of_text and tokenizer are expected"),
        ({**HUGGING_FACE, "tokenizer": "{}"}, "the tokenizer is damaged: tokenizer must be an object"),
        ({**HUGGING_FACE, "tokenizer": {}}, "the tokenizer is damaged: model: this setting is required"),
        (
            {**HUGGING_FACE, "end_of_text": 256},
            "the tokenizer is damaged: end_of_text must be a token or null, not 256",
        ),
        (
            {**HUGGING_FACE, "end_of_text": "<s>"},
            "the tokenizer is damaged: end-of-text, '<s>', is none of its added t",
        ),
        ({**NAMED, "tokens": ALL[1:]}, "the tokenizer is damaged: the 256 bytes must be among the tokens"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_one_line(content, message, tmp_path):
    path = tmp_path / FILE
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(UserError) as error:
        load(tmp_path)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200 + len(str(path))


def test_no_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match=f"{FILE}: a JSON file is expected there"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content", [GOOD, CHAR, NAMED, HUGGING_FACE, {**BPE, "tokens": [*ALL, "ab"]}], ids=lambda c: c["name"]
)
def test_any_change_of_a_byte_loads_or_is_one_line(content, tmp_path):
    good = json.dumps(content, ensure_ascii=False).encode()
    (tmp_path / FILE).write_bytes(good)
    assert load(tmp_path).name == content["name"]
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(good)
        damaged[rng.integers(len(good))] = rng.integers(256)
        (tmp_path / FILE).write_bytes(bytes(damaged[: rng.integers(len(good) // 2, 2 * len(good))]))
        try:
            load(tmp_path)
        except UserError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
