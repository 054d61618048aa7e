"""The page: what is in it, and in a browser, where there is one, that curves are read over steps, tokens and time."""

import json
import re

import pytest

from gpt.insight.compare.table import compared
from gpt.insight.compare.web import as_html
from gpt.insight.record import read

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def page(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained("one", losses=[5.0, 4.0, 3.5])
    trained(HOSTILE, "seed=7", losses=[4.5, 3.0, 2.5])
    file = tmp_path / "runs.html"
    file.write_text(as_html(compared([read(tmp_path / "one"), read(tmp_path / HOSTILE)])), encoding="utf-8")
    return file


def data_of(html):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.S)[1])


def test_the_page_has_the_table_the_difference_and_the_curves(page):
    html = page.read_text(encoding="utf-8")
    charts = data_of(html)["charts"]
    assert [one["title"] for one in charts] == ["Validation loss", "Training loss"]
    assert [series["name"] for series in charts[0]["series"]] == [HOSTILE, "one"]
    curve = {"step": [10, 20, 30], "tokens": [1000, 2000, 3000], "elapsed": [10, 20, 30], "y": [4.5, 3, 2.5]}
    assert charts[0]["series"][0] == {"name": HOSTILE, **curve}
    assert '<td class="number">2.5000</td>' in html
    assert '<tr><th scope="row">seed</th><td>7</td><td>1337</td></tr>' in html


def test_nothing_is_fetched_and_names_are_text(page):
    html = page.read_text(encoding="utf-8")
    assert not re.search(r"https?:|<link(?! rel=\"icon\" href=\"data:,\")", html)
    assert "<img" not in html
    assert html.count("<script") == 2


def test_bits_per_byte_are_drawn_where_losses_do_not_compare(trained):
    html = as_html(compared([read(trained("one")), read(trained("two", "tokenizer=bpe"))]))
    assert data_of(html)["charts"][0]["title"] == "Validation, bits per byte"


def test_a_run_without_curves_has_a_row(trained, tmp_path):
    html = as_html(compared([read(trained("one", losses=[], done=0))]))
    assert data_of(html) == {"charts": []}
    assert "no checkpoint" in html


READS = """
const [chart] = document.querySelectorAll(".chart");
const canvas = chart.querySelector("canvas"), keys = [...chart.querySelectorAll(".legend button")];
const point = (share) => {
  const box = canvas.getBoundingClientRect();
  const clientX = box.left + 58 + share * (box.width - 70), clientY = box.top + 60;
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
  return [chart.querySelector(".told").textContent, ...keys.map((key) => key.textContent)];
};
told.steps = point(2 / 3);
document.querySelector("[value=elapsed]").click();
told.time = point(1);
told.label = canvas.getAttribute("aria-label");
document.querySelector("[value=tokens]").click();
told.tokens = point(1 / 3);
document.querySelector("#log").click();
told.log = point(0);
keys[0].click();
told.pressed = keys.map((key) => key.getAttribute("aria-pressed"));
told.alone = point(1);
canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
told.key = keys[1].textContent;
keys[1].click();
told.none = point(0.5)[0];
told.pixels = new Set(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data).size;
"""


@pytest.mark.parametrize("width", [1280, 500])
def test_curves_are_read_in_a_browser(page, browser, width):
    told, console = browser(page, READS, width)
    assert (told["errors"], console, told["wider"]) == ([], [], False)
    assert told["steps"] == ["near step 20", f"{HOSTILE}3", "one4"]
    assert told["time"] == ["near 30 seconds", f"{HOSTILE}2.5", "one3.5"]
    assert told["label"].startswith("Validation loss, nats per token, over time, seconds: <img")
    assert "one from 5 to 3.5" in told["label"]
    assert told["tokens"] == ["near 1,000 tokens", f"{HOSTILE}4.5", "one5"]
    assert told["log"] == ["near 1,000 tokens", f"{HOSTILE}4.5", "one5"]
    assert told["pressed"] == ["false", "true"]
    assert told["alone"] == ["near 3,000 tokens", HOSTILE, "one3.5"]
    assert told["key"] == "one4"
    assert told["none"] == ""
