"""What is written gives the same ids to `transformers`, and what it reads comes back."""

import functools
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from transformers import AutoTokenizer

from gpt.config import Choice, UserError
from gpt.data.encoding import PATTERNS
from gpt.data.tokenizer import Tokenizer
from gpt.data.tokenizer.bpe import BPE
from gpt.data.tokenizer.char import Char
from gpt.interop.hugging_face.tokenizer import END, read_tokenizer, write_tokenizer
from gpt.interop.hugging_face.tokenizer_json import described, merges

TEXTS = [
    "the people of the United States ",
    "don't we? 日本語の文章。日本語\r\n\r\n",
    "naïve café 😀😀 12345 12345\n",
] * 3
TRICKY = [
    "", " ", "  \n\n  ", "\r", "\r\n", "\n\r", "\0", "\u2028\u2029\u0085\x0b\x0c\x1c", "\ufeffBOM", "a" * 5000,
    " " * 5000 + "z", "👩‍👩‍👧‍👦", "e\u0301\u0302", "שלום", "１２３", "'s 'LL a'ſ", "\t\tif x:\n\t\t\treturn",
    "私は機械学習が大好きです", "\U0010ffff\ud7ff\ue000", "1234567 12345678901", "a \n b  \n\n c\n ", "हिन्दी",
]  # fmt: skip
ANY = st.text().filter(lambda text: END not in text)  # which hypothesis finds in the code
MARKS = st.text(st.sampled_from("\u2028\u0085\0\r\n\t 😀é日aA1２'-.sLl\u0301"))
MADE = {
    "byte": {"name": "byte"},
    "char error": {"name": "char", "unknown": "error"},
    "char skip": {"name": "char", "unknown": "skip"},
    "char replace": {"name": "char", "unknown": "replace"},
    "bpe gpt2": {"name": "bpe", "pattern": "gpt2", "vocab_size": 300},
    "bpe modern": {"name": "bpe", "pattern": "modern", "vocab_size": 300},
}
PUBLISHED = {encoding: {"name": "named", "encoding": encoding} for encoding in ("gpt2", "cl100k_base", "o200k_base")}
PART = 20_000
"""Characters of each text that are compared here."""


def build(config, documents=(*TEXTS, *TRICKY)):
    choice = Choice("gpt.data.tokenizer", "tokenizer").validate(config)
    return choice.build(lambda split: ([text] for text in documents if split == "train"))


def opened(tokenizer, model="gpt2"):
    """As `transformers` opens it beside a model of a kind that has a tokenizer class of its own."""
    with tempfile.TemporaryDirectory() as folder:
        remarks = write_tokenizer(tokenizer, Path(folder), 64)
        (Path(folder) / "config.json").write_text(json.dumps({"model_type": model}), encoding="utf-8")
        return SimpleNamespace(ours=tokenizer, theirs=AutoTokenizer.from_pretrained(folder), remarks=remarks)


class Other(Tokenizer):
    name = "other"


@functools.cache
def made(name):
    return opened(build({**MADE, **PUBLISHED}[name]))


@pytest.fixture(params=[*MADE, *PUBLISHED])
def pair(request):
    if request.param in PUBLISHED:
        request.getfixturevalue("published")
    return made(request.param)


def same(pair, text):
    ids = pair.ours.encode(text)
    assert pair.theirs(text, verbose=False)["input_ids"] == ids
    assert pair.theirs.decode(ids) == pair.ours.decode(ids) == text


def test_ids_and_texts_are_the_same(pair):
    for text in TRICKY:
        same(pair, text)


def test_ids_are_the_same_on_every_corpus(pair, corpora):
    for text in corpora.values():
        text = text[:PART].replace(END, "")
        same(opened(build(MADE["char error"], [text])) if pair.ours.name == "char" else pair, text)


@pytest.mark.parametrize("name", ["byte", "char skip", "char replace", *(n for n in MADE if n.startswith("bpe"))])
@settings(deadline=None)
@given(text=ANY | MARKS)
def test_ids_are_the_same_on_any_text(name, text):
    pair = made(name)
    assert pair.theirs.encode(text) == pair.ours.encode(text)


@pytest.mark.parametrize("encoding", PUBLISHED)
@settings(deadline=None)
@given(text=ANY | MARKS)
def test_ids_of_published_ones_are_the_same_on_any_text(encoding, published, text):
    same(made(encoding), text)


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(deadline=None)
@given(tokens=st.lists(st.text("ab ", min_size=2, max_size=5), unique=True, max_size=30), text=st.text("ab "))
def test_whatever_the_order_of_the_tokens(pattern, tokens, text):
    all_tokens = [*(bytes([i]) for i in range(256)), *(token.encode() for token in tokens), b""]
    ours = BPE(all_tokens, pattern)
    theirs = Library.from_str(json.dumps(described(ours)))
    assert theirs.encode(text).ids == ours.encode(text)


def test_end_of_text(pair):
    ours, theirs = pair.ours, pair.theirs
    end = ours.end_of_text
    assert (theirs.eos_token_id, theirs.bos_token_id, theirs.eos_token, theirs.bos_token) == (end, end, END, END)
    assert theirs(f"the{END}the")["input_ids"] == [*ours.encode("the"), end, *ours.encode("the")]
    assert theirs.decode([*ours.encode("the"), end], skip_special_tokens=True) == "the"
    assert pair.remarks[0].startswith(f"{END} in a text is read as the token of that name, id {end}; ")


def test_without_end_of_text_there_is_none():
    pair = opened(Char("ab", end_of_text=False, unknown="skip"))
    assert (pair.theirs.eos_token, pair.theirs.bos_token) == (None, None)
    assert len(pair.theirs) == 2
    assert pair.remarks[0] == "There is no end-of-text token: a text ends by its length."


def test_nothing_is_added_or_cut(pair):
    assert pair.theirs.model_max_length == 64
    assert pair.theirs.decode(pair.ours.encode(" the 's ")) == " the 's "
    assert len(pair.theirs.encode("the" * 100, verbose=False)) == len(pair.ours.encode("the" * 100)) > 64


@pytest.mark.parametrize("model", ["gpt2", "llama", "qwen3", "gpt_neox", "mistral"])
def test_whatever_the_kind_of_model(model):
    same(opened(made("bpe modern").ours, model), "".join(TRICKY))


@pytest.mark.parametrize("unknown, ids", [("skip", [0, 1]), ("replace", [0, 3, 1, 3])])
def test_unknown_characters_are_left_out_or_replaced(unknown, ids):
    pair = opened(Char("abc\ufffd", False, unknown))
    assert pair.ours.encode("aéb😀") == pair.theirs.encode("aéb😀") == ids
    assert pair.remarks[1].startswith("A character that the training text had not ")


def test_unknown_characters_are_an_error_where_they_are_here():
    pair = opened(Char("ab\ufffd", True, "error"))
    assert pair.theirs.encode("ab\ufffd") == [0, 1, 2]
    with pytest.raises(Exception, match="Missing"):
        pair.theirs.encode("aéb")


def test_half_a_character_is_shown_alike(pair):
    if pair.ours.name == "char":
        pytest.skip("its tokens are whole characters")
    for found in ("日本".encode()[1:4], b"\xf0\x9f\x98a\xff\xc3", b"\xed\xa0\x80\xc0\x80"):
        ids = [pair.ours.tokens.index(bytes([byte])) for byte in found]
        assert pair.theirs.decode(ids) == pair.ours.decode(ids)


def test_pairs_are_found_by_merging():
    tokens = [b"a", b"b", b"c", b"bc", b"ab", b"abc", b"cab", b"bab", b"ba", b"aabb"]
    # abc is a bc, for bc comes before ab; cab is c ab; bab is b ab, for ab comes before ba; aabb stays at a ab b.
    assert merges(tokens) == [(b"b", b"c"), (b"a", b"b"), (b"a", b"bc"), (b"c", b"ab"), (b"b", b"ab"), (b"b", b"a")]


def test_a_variant_without_such_a_form_is_one_line():
    with pytest.raises(UserError, match="^tokenizer=other has no form that Hugging Face's tokenizers reads$"):
        described(Other([b"a"], None))


def test_what_was_written_comes_back_as_it_was(tmp_path):
    for name in MADE:
        ours = made(name).ours
        write_tokenizer(ours, tmp_path, 64)
        again = read_tokenizer(tmp_path)
        assert type(again) is type(ours)
        assert again.saved() == ours.saved()


def test_what_was_published_comes_back_with_the_same_ids(published, tmp_path):
    for encoding, kind in {"gpt2": "bpe", "cl100k_base": "hugging_face"}.items():
        ours = made(encoding).ours
        write_tokenizer(ours, tmp_path, 64)
        again = read_tokenizer(tmp_path)
        assert (again.name, again.end_of_text) == (kind, ours.end_of_text)
        assert [again.encode(text) for text in TRICKY] == [ours.encode(text) for text in TRICKY]


@pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen3"])
def test_a_model_s_tokenizer_is_read_and_written_again(name, models, tmp_path):
    ours = read_tokenizer(models[name])
    assert ours.name == "hugging_face"
    theirs = AutoTokenizer.from_pretrained(models[name])
    text = "the people don't 日本語の文章 naïve <think>12345</think> \r\n\n 'LL"
    assert ours.encode(text) == theirs.encode(text, add_special_tokens=False)
    pair = opened(ours)
    for text in TRICKY:
        same(pair, text)
    assert (pair.theirs.eos_token, pair.theirs.eos_token_id) == (ours.end, ours.end_of_text)
    assert pair.theirs.encode(f"the{ours.end}")[-1] == ours.end_of_text
    assert pair.remarks[1] == (
        "Other special tokens likewise. No token is put before or after a text, and it is not normalized."
    )
    write_tokenizer(ours, tmp_path, 64)
    assert read_tokenizer(tmp_path).encode(text) == ours.encode(text)


@pytest.mark.parametrize("content", [{}, [], {"model": {}}, {"model": {"vocab": {"a": 0}}, "pre_tokenizer": None}])
def test_a_folder_without_a_tokenizer_is_one_line(content, tmp_path):
    with pytest.raises(UserError, match=r"^run: there is no .*tokenizer\.json; name a folder that has"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer\.json: ") as error:
        read_tokenizer(tmp_path)
    assert "\n" not in str(error.value)
