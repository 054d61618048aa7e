"""Pictures, which are there and show what they should."""

import warnings

import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from gpt.insight.inspect.pictures import draw, heads_figure, layer_figure, shortened, surprise_figure


def texts(figure):
    figure.canvas.draw()
    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("labels", [tuple("私は機械学習が大好きです"), ("私 1/3", "$a", "<end of text>"), ("a",)])
def test_one_for_each_layer_one_of_the_heads_one_of_the_surprise(reading, tmp_path, labels):
    files = draw(reading(labels), tmp_path)
    assert [file.name for file in files] == [
        "attention_layer_01.png",
        "attention_layer_02.png",
        "heads.png",
        "surprise.png",
    ]
    assert sorted(tmp_path.iterdir()) == files
    for file in files:
        height, width, _ = imread(file).shape
        assert 300 < height < 2000
        assert 300 < width < 2000


def test_a_layer_shows_its_weights_and_each_token_on_both_sides(reading):
    seen = reading()
    figure = layer_figure(seen.weights[0], seen.labels, "Layer 1")
    images = [axes.get_images()[0].get_array() for axes in figure.axes if axes.get_images()]
    assert len(images) == 3
    assert images[0][3, :4].tolist() == pytest.approx([0.25] * 4)
    assert images[0].mask[3].tolist() == [False] * 4 + [True] * 8
    assert texts(figure).count("私") == 1 + 3  # beside the row of heads, and below each


def test_too_many_tokens_are_not_named_and_that_is_said(reading):
    seen = reading(labels=["a"] * 90, layers=1)
    figure = layer_figure(seen.weights[0], seen.labels, "Layer 1")
    assert "a" not in texts(figure)
    assert any("90 tokens are too many to name here" in text for text in texts(figure))
    assert max(figure.get_size_inches()) < 40
    many = surprise_figure(reading(labels=["a"] * 300, layers=1, heads=1), ["a"] * 300)
    assert "a" not in texts(many)


def test_heads_with_their_numbers(reading):
    shown = texts(heads_figure(reading(labels="ab").heads))
    assert shown.count("0.5") == 6  # the mean of 0 and 1 bit
    assert shown.count("75%") == 6  # the mean of 1 and 1/2


def test_surprise_as_bars(reading):
    figure = surprise_figure(reading(labels="abc", bits=[None, 2.0, 4.0]), list("abc"))
    assert [bar.get_height() for bar in figure.axes[0].patches] == [0, 2, 4]
    assert [line.get_ydata()[0] for line in figure.axes[0].lines] == [3]


def test_long_labels_are_cut():
    assert shortened("·responsibility") == "·responsibili…"
    assert shortened("·the") == "·the"
