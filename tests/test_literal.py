"""Free text goes through placeholders, and comes out as it was typed."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from gpt.literal import Texts, escaped, is_nothing, is_text, typed, unescaped


@pytest.mark.parametrize(
    "key",
    ["prompt", "stop", "name", "run", "resume", "init", "to", "path", "data.path", "a.b_path", "dataset.separator"],
)
def test_these_keys_are_text(key: str) -> None:
    assert is_text(key)


@pytest.mark.parametrize("key", ["prompts", "steps", "tokenizer.name", "dataset.paths", "model.stop"])
def test_these_keys_are_values(key: str) -> None:
    assert not is_text(key)


def test_null_leaves_out_what_can_be_done_without() -> None:
    assert is_nothing("dataset.separator", "null")
    assert is_nothing("dataset.validation_path", "null")
    assert is_nothing("resume", "null")
    assert is_nothing("init", "null")
    assert not is_nothing("dataset.separator", "Null")
    assert not is_nothing("prompt", "null")
    assert not is_nothing("dataset.path", "null"), "it cannot do without"


@pytest.mark.parametrize(
    "typed, text",
    [
        (r"a\nb\tc", "a\nb\tc"),
        (r"\\n", r"\n"),
        (r"\\\n", "\\\n"),
        ("end\\", "end\\"),
        (r"\d\N\x41\u0041", r"\d\N\x41\u0041"),
    ],
)
def test_unescaped_knows_three_escapes(typed: str, text: str) -> None:
    assert unescaped(typed) == text


@given(st.text())
@settings(deadline=None)
def test_what_is_held_comes_back(text: str) -> None:
    texts = Texts()
    placeholder = texts.held("name", text)
    assert placeholder.isidentifier()
    assert texts.restored({"a": [placeholder, 1, None], "b": f"x{placeholder}abc"}) == {
        "a": [text, 1, None],
        "b": f"x{text}abc",
    }


def test_a_text_that_is_itself_a_placeholder_stays() -> None:
    texts = Texts()
    first = texts.held("name", "secret")
    second = texts.held("prompt", first)
    assert texts.restored(second) == first
    assert Texts().restored(first) == first


@pytest.mark.parametrize(
    "key, text, held",
    [
        ("resume", "~/a", "/home/me/a"),
        ("hydra.run.dir", "~/a", "/home/me/a"),
        ("prompt", "~/a", "~/a"),
        ("run", "a~", "a~"),
    ],
)
def test_the_home_folder_is_found_where_a_folder_is_named(monkeypatch, key, text, held) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    texts = Texts()
    assert texts.restored(texts.held(key, text)) == held


@given(st.text())
@settings(deadline=None)
def test_a_text_is_unescaped_to_what_was_escaped(text) -> None:
    assert unescaped(escaped(text)) == text


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab\\'\"${}, =:\n1n私#()[]@~")


@given(st.lists(VALUES | st.sampled_from(["null", "TRUE", "1e5", "5min", "off", "a\\${x}", "\\", "\\\n", " a "])))
@settings(deadline=None, max_examples=50)
def test_what_is_typed_is_read_as_what_it_was(values) -> None:
    """By hydra's grammar, and then by OmegaConf, which looks for the x in ${x}."""
    override = OverridesParser.create().parse_override(f"++{typed('tags', values)}")
    read = OmegaConf.to_container(OmegaConf.create({"tags": override.value()}), resolve=True)
    assert read == {"tags": values}
    assert [type(value) for value in read["tags"]] == [type(value) for value in values]


def test_a_free_text_is_typed_as_it_stands() -> None:
    assert typed("name", "a 'b' ${x}\\n") == "name=a 'b' ${x}\\n"
    assert typed("dataset.separator", "\n\\") == "dataset.separator=\\n\\\\"
    assert typed("init", None) == "init=null"
