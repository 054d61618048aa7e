"""The page: what its script reads, and in a browser, where there is one, that a head can be picked."""

import base64
import json

import numpy as np
import pytest
import torch

from gpt.insight.inspect.web import as_data, packed, write

SENTENCE = "私は機械学習が大好きです"


def test_weights_come_back_from_their_bytes():
    """Rows of the lower triangle, a byte for each weight, by the root."""
    weights = torch.tensor([[1.0, 0, 0], [0.25, 0.75, 0], [0.0001, 0.01, 0.9899]])
    codes = np.frombuffer(base64.b64decode(packed(weights)), np.uint8)
    assert codes.tolist() == [255, 128, 221, 3, 26, 254]
    assert (codes / 255) ** 2 == pytest.approx([1, 0.25, 0.75, 0.0001, 0.01, 0.9899], abs=0.004)


def test_every_weight_is_exact_to_0_4_percent():
    weights = torch.linspace(0, 1, 10_000)[None].T.expand(-1, 1).unsqueeze(-1)
    codes = [np.frombuffer(base64.b64decode(packed(w)), np.uint8)[0] for w in weights]
    assert np.abs((np.array(codes) / 255) ** 2 - weights[:, 0, 0].numpy()).max() < 0.004


def test_the_data_has_everything_in_its_place(reading):
    data = as_data(reading(layers=2, heads=3))
    assert data["labels"] == list(SENTENCE)
    assert data["bits"][:3] == [None, 1, 2]
    assert [len(layer) for layer in data["weights"]] == [3, 3]
    assert [len(data[name]) for name in ("entropy", "first", "back")] == [2, 2, 2]
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_hostile_prompt_is_text(reading, tmp_path):
    hostile = "</script><script>alert(1)</script>"
    text = write(
        reading(labels=[hostile, "<img src=x onerror=alert(1)>"], likely=[(hostile, 1.0)]), tmp_path
    ).read_text()
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert "<img" not in text


def test_the_page_tells_what_was_cut_and_stays_small(reading, tmp_path):
    file = write(reading(labels=["私 1/3"] * 128, layers=4, heads=3, notices=["cut & said"]), tmp_path)
    text = file.read_text(encoding="utf-8")
    assert "cut &amp; said" in text
    assert len(text) < 250_000


CLICKS = """
const text = (id) => document.getElementById(id).textContent;
buttons[1][2].click();
told.picked = text("picked");
document.querySelector("#heads").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
told.moved = text("picked");
const box = canvas.getBoundingClientRect();
const spot = (key, query) => ({
  clientX: box.left + layout.left + (key + 0.5) * layout.cell,
  clientY: box.top + layout.top + (query + 0.5) * layout.cell,
});
canvas.dispatchEvent(new MouseEvent("mousemove", spot(1, 3)));
told.hover = text("hover");
canvas.dispatchEvent(new MouseEvent("click", spot(0, 3)));
told.query = text("query");
told.taken = [...document.querySelectorAll("#taken button")].map((chip) => chip.textContent);
told.surprise = [...document.querySelectorAll("#surprise button")].map((chip) => chip.textContent);
"""


@pytest.mark.parametrize("width", [1280, 500])
def test_a_head_and_a_token_are_picked_in_a_browser(reading, tmp_path, browser, width):
    told, console = browser(write(reading(), tmp_path), CLICKS, width)
    assert (told["errors"], console, told["wider"]) == ([], [], False)
    assert told["picked"] == "Layer 2, head 3"
    assert told["moved"] == "Layer 2, head 2"
    assert told["hover"] == "械 → は: 25%"
    assert told["query"] == "What 械 (token 4) looks at, layer 2, head 2"
    assert told["taken"][:6] == ["私25%", "は25%", "機25%", "械25%", "学–", "習–"]
    assert told["surprise"][:3] == ["私–", "は1.0", "機2.0"]
