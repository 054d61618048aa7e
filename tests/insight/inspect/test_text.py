"""What the terminal shows, with colours and without."""

import io
import re

import pytest
from rich.console import Console

from gpt.insight import terminal
from gpt.insight.inspect.text import page, show

SENTENCE = "私は機械学習が大好きです"


def printed(reading, width=100, **console):
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, **console).print(page(reading, width))
    return out.getvalue()


def test_without_colours_each_token_has_its_surprise_as_a_number(reading):
    text = printed(reading())
    assert "  私 –  は 1.0  機 2.0  械 3.0  学 4.0  習 5.0  が 6.0  大 7.0  好 8.0  き 9.0  で 10.0  す 11.0\n" in text
    assert "mean surprise 6.00 bits per token" in text
    assert "\x1b" not in text


def test_with_colours_too(reading):
    text = printed(reading(), force_terminal=True, color_system="truecolor", no_color=False)
    assert "\x1b[38;2;32;32;32;48;2;253;141;60m械\x1b[0m" in text  # 3 bits: #fd8d3c
    assert "3.0" in text


def test_next_tokens_have_numbers_bars_and_a_rest(reading):
    lines = printed(reading()).splitlines()
    assert any(re.search(r" 1  か +75.0%  █{30}$", line.rstrip()) for line in lines)
    assert any(re.search(r" 2  ↵ +5.0%  ██$", line.rstrip()) for line in lines)
    assert any(re.search(r"all others +20.0%$", line.rstrip()) for line in lines)


def test_each_head_of_few_and_the_remarkable_ones_of_many(reading):
    few = printed(reading(layers=2, heads=3))
    assert len(re.findall(r"^ +\d +\d+ +\d\.\d\d +\d+% +\d\.\d", few, re.M)) == 6
    many = printed(reading(layers=5, heads=5))
    assert "The page has all 25 heads." in many
    assert 3 <= len(re.findall(r"^ +\d +\d+ +\d\.\d\d +\d+% +\d\.\d", many, re.M)) <= 15


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_of_tokens_is_wider_than_the_terminal(reading, width):
    for line in printed(reading(labels=("私 1/3", "長い", "word") * 9), width).splitlines():
        assert len(line.rstrip()) <= width


def test_a_notice_is_shown(reading):
    assert re.search(
        r"^notice +the prompt has 9 tokens *$", printed(reading(notices=["the prompt has 9 tokens"])), re.M
    )


def test_markup_in_a_token_is_text(reading):
    text = printed(reading(labels=("[bold]", "[/x]"), likely=[("[red]", 1.0)]))
    assert "[bold] –  [/x] 1.0" in text
    assert "[red]" in text


def test_a_terminal_of_ascii_shows_other_signs(reading, capsys, monkeypatch):
    class Ascii(Console):
        encoding = "ascii"

    monkeypatch.setattr(terminal, "Console", Ascii)
    show(reading(labels=("a", "·b↵")))
    out = capsys.readouterr().out
    assert "a -  _b$ 1.0" in out
    assert "█" not in out
