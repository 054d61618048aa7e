"""A page that is one file, whatever is in it."""

import json
import re

import jinja2
import pytest

from gpt.insight.page import as_json, build, write

BODY = """{% extends "frame.html" %}
{% block title %}{{ name }}{% endblock %}
{% block style %}{% include "own.css" %}{% endblock %}
{% block body %}<h1>{{ name }}</h1>{% endblock %}
{% block script %}{% include "own.js" %}{% endblock %}
"""
HOSTILE = "</script><script>alert(1)</script><!-- & 'quoted' \u2028 私 -->"


@pytest.fixture
def template(tmp_path):
    (tmp_path / "own.html").write_text(BODY)
    (tmp_path / "own.css").write_text("h1 > b { color: red }")
    (tmp_path / "own.js").write_text("const x = 1 < 2 && `${3}`;")
    return tmp_path / "own.html"


def data_of(html):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.S)[1])


def test_the_frame_holds_the_body_the_style_and_the_script_as_they_are(template):
    html = build(template, {}, name="A & B")
    assert html.startswith("<!doctype html>")
    assert "<title>A &amp; B</title>" in html
    assert "<h1>A &amp; B</h1>" in html
    assert "h1 > b { color: red }" in html
    assert "const x = 1 < 2 && `${3}`;" in html


def test_a_hostile_text_is_text_in_the_body_and_in_the_data(template):
    html = build(template, {"prompt": HOSTILE}, name=HOSTILE)
    assert data_of(html) == {"prompt": HOSTILE}
    assert html.count("<script") == 2
    assert html.count("</script>") == 2
    assert "<!--" not in html


def test_half_of_a_surrogate_pair_is_a_question_mark_in_the_data_too(template, tmp_path):
    path = write(tmp_path / "page.html", build(template, {"name": "\udcff私"}, name="x"))
    assert data_of(path.read_text(encoding="utf-8")) == {"name": "?私"}


def test_nothing_comes_from_elsewhere(template):
    html = build(template, {}, name="x")
    assert [link for link in re.findall(r"(?:src|href)=(\S+?)>", html) if not link.startswith('"data:')] == []
    assert "default-src 'none'" in html


def test_numbers_that_json_does_not_have_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json({"x": float("nan")})


def test_a_value_that_the_template_names_must_be_given(template):
    with pytest.raises(jinja2.UndefinedError):
        build(template, {})


def test_written_whole_and_in_utf8(tmp_path):
    path = write(tmp_path / "new" / "page.html", "私 \udcff\n")
    assert path.read_bytes() == "私 ?\n".encode()
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
