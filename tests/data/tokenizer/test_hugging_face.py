"""The ids are the library's, the text comes back, and special tokens are text."""

import functools
import json
import shutil
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from gpt.config import Choice, UserError
from gpt.data import tokens
from gpt.data.byte_level import GPT2, LLAMA3
from gpt.data.pieces import WHOLE
from gpt.data.tokenizer.hugging_face import HuggingFace, HuggingFaceConfig, read

MARKS = st.text(st.sampled_from("\u2028\u0085\0\r\n\t 😀é日aA1２'-.sLlg\u0301"))
NAMES = ("gpt2", "llama3", "qwen3")


def opened(folder) -> HuggingFace:
    return read(folder, "tokenizer.path")


opened_once = functools.cache(opened)


def theirs(folder, text):
    return Library.from_file(str(folder / "tokenizer.json")).encode(text, add_special_tokens=False).ids


def edited(folder, to, **changes):
    shutil.copytree(folder, to, dirs_exist_ok=True)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    (to / "tokenizer.json").write_text(json.dumps({**content, **changes}), encoding="utf-8")
    return to


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_the_library_on_every_corpus(name, models, corpora):
    tokenizer, library = opened(models[name]), Library.from_file(str(models[name] / "tokenizer.json"))
    for file, text in corpora.items():
        text = unicodedata.normalize("NFC", text[:100_000].replace("<|", "< |"))
        ids = tokenizer.encode(text)
        assert ids == library.encode(text, add_special_tokens=False).ids, file
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(text=st.text() | MARKS)
def test_any_text_comes_back_also_one_that_is_not_in_nfc(name, models, text):
    tokenizer = opened_once(models[name])
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.byte_lengths()[ids].sum() == len(text.encode())


@pytest.mark.parametrize("name", NAMES)
def test_special_tokens_stand_for_no_text(name, models):
    tokenizer = opened(models[name])
    names = {token["content"]: token["id"] for token in tokenizer.content["added_tokens"]}
    assert names[tokenizer.end] == tokenizer.end_of_text
    for content, i in names.items():
        ids = tokenizer.encode(f"the{content}the")
        assert tokenizer.decode(ids) == f"the{content}the"
        if "think" in content:
            assert i in ids
            assert tokenizer.tokens[i] == content.encode()
        else:
            assert i not in ids
            assert tokenizer.tokens[i] == b""
    assert tokenizer.vocab_size == max(names.values()) + 1


def test_nothing_is_put_before_a_text(models):
    tokenizer, library = opened(models["llama3"]), Library.from_file(str(models["llama3"] / "tokenizer.json"))
    begin, *rest = library.encode("the people").ids
    assert library.id_to_token(begin) == "<|begin_of_text|>"
    assert tokenizer.encode("the people") == rest


def test_only_a_known_way_to_split_is_cut_by(models):
    assert opened(models["gpt2"]).pattern == GPT2
    assert opened(models["llama3"]).pattern == LLAMA3
    assert opened(models["qwen3"]).pattern == WHOLE  # <think> could be cut in two
    text = "word " * 100_000 + "</think>"
    assert opened(models["qwen3"]).encode(text) == theirs(models["qwen3"], text)


def test_long_texts_have_the_ids_of_the_whole(models, corpora):
    text = corpora["tinyshakespeare.txt"][:300_000]
    assert opened(models["llama3"]).encode(text) == theirs(models["llama3"], text)


def test_a_link_and_the_file_itself_are_read_too(models, tmp_path):
    (tmp_path / "blob").write_bytes((models["gpt2"] / "tokenizer.json").read_bytes())
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (folder / "tokenizer.json").symlink_to(tmp_path / "blob")
    assert opened(folder).saved() == opened(models["gpt2"] / "tokenizer.json").saved() == opened(models["gpt2"]).saved()


@pytest.mark.parametrize(
    "settings, end",
    [
        (None, "<|endoftext|>"),
        ({}, "<|endoftext|>"),
        ({"eos_token": None}, "<|endoftext|>"),
        ({"eos_token": "<|im_end|>"}, "<|im_end|>"),
        ({"eos_token": {"content": "<|im_end|>"}}, "<|im_end|>"),
        ({"eos_token": "</think>"}, "</think>"),  # special from then on
    ],
)
def test_end_of_text_is_what_the_settings_name(settings, end, models, tmp_path):
    folder = edited(models["qwen3"], tmp_path)
    (folder / "tokenizer_config.json").unlink()
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    tokenizer = opened(folder)
    assert tokenizer.end == end
    assert tokenizer.end_of_text not in tokenizer.encode(f"a{end}b")
    assert tokenizer.decode([tokenizer.end_of_text]) == ""


def test_without_one_there_is_none(models, tmp_path):
    folder = edited(models["gpt2"], tmp_path, added_tokens=[])
    (folder / "tokenizer_config.json").unlink()
    assert opened(folder).end_of_text is None


@pytest.mark.parametrize(
    "changes, told",
    [
        ({"pre_tokenizer": {"type": "Metaspace"}}, "it splits text by 'Metaspace' in the end; only byte-level .*name"),
        ({"added_tokens": []}, "end-of-text, '<|endoftext|>', is none of its added tokens; name another"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "(("}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}]}},
         "the library refuses it: .*; name another"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_line(changes, told, models, tmp_path):
    folder = edited(models["gpt2"], tmp_path, **changes)
    with pytest.raises(UserError) as error:
        opened(folder)
    assert str(error.value).startswith(f"tokenizer.path: {folder / 'tokenizer.json'}: ")
    assert "\n" not in str(error.value)
    error.match(told.replace("|", r"\|"))


def test_a_special_token_that_is_a_word_is_refused(models, tmp_path):
    content = json.loads((models["gpt2"] / "tokenizer.json").read_text(encoding="utf-8"))
    model = {**content["model"], "vocab": {**content["model"]["vocab"], "EOS": 1000}, "ignore_merges": True}
    added = [*content["added_tokens"], {**content["added_tokens"][0], "id": 1000, "content": "EOS"}]
    with pytest.raises(UserError, match="its special token 'EOS' comes out of plain text too"):
        opened(edited(models["gpt2"], tmp_path, model=model, added_tokens=added))


def test_no_such_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"^tokenizer\.path: there is no .*tokenizer\.json; name a folder that has "):
        HuggingFaceConfig(path=str(tmp_path)).build(lambda split: iter(()))


def test_its_path_means_the_same_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    choice = Choice("gpt.data.tokenizer", "tokenizer")
    assert choice.validate({"name": "hugging_face", "path": "model"}).path == str(tmp_path / "model")
    with pytest.raises(UserError, match=r"^tokenizer\.path: expected a folder or a tokenizer\.json, got nothing"):
        choice.validate({"name": "hugging_face", "path": ""})


def test_tokens_are_found_again_by_content(models, tmp_path, texts):
    dataset = texts(["the people"], [])
    copy = edited(models["gpt2"], tmp_path / "copy")
    shutil.copyfile(models["gpt2"] / "tokenizer.json", copy / "tokenizer.json")
    first, second = (tokens.fingerprint(dataset, HuggingFaceConfig(path=str(f))) for f in (models["gpt2"], copy))
    assert first == second
    edited(models["llama3"], copy)
    assert tokens.fingerprint(dataset, HuggingFaceConfig(path=str(copy))) != first
