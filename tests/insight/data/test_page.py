import re

from rich.console import Console

from gpt.insight.data.page import page

LONG = "a line that is long enough to be no accident at all"


def printed(look, width=100, colour=False):
    console = Console(width=width, highlight=False, color_system="truecolor" if colour else None, force_terminal=colour)
    with console.capture() as captured:
        console.print(page(look, width, colour))
    return captured.get()


def row(text, key):
    """What stands beside a name."""
    return re.search(rf"^  {re.escape(key)}  +(.*?) *$", text, re.M)[1].split("  ")[0]


def test_the_numbers_are_there(looked):
    text = printed(looked(["abcd" * 25, "xy"], ["ab" * 10]))
    assert row(text, "text") == "texts of my own"
    assert row(text, "tokenizer") == "byte, 257 tokens in the vocabulary"
    assert re.search(r"^  documents +2 +1 *$", text, re.M)
    assert re.search(r"^  bytes +102 +20 *$", text, re.M)
    assert re.search(r"^  share of the bytes +83\.6 % +16\.4 % *$", text, re.M)
    assert re.search(r"^  tokens +104 +21 *$", text, re.M)
    assert re.search(r"^  bytes a token +0\.98 +0\.95 *$", text, re.M)
    assert row(text, "an epoch") == "12 sequences of 8 tokens, 6 steps of 2; it leaves out 8 tokens"
    assert row(text, "each token") == "is seen 1.7 times in 10 steps"
    assert row(text, "an evaluation").startswith(
        "reads 3 windows and takes about as long as 1 step; there are 3 evaluations"
    )
    assert row(text, "characters") == "102"
    assert "shortest 2 characters, median 100, longest 100" in text
    assert "1 have fewer tokens than the context, 8; 1 have more" in text
    assert row(text, "longest line") == "100 characters, in train, document 1"
    assert row(text, "different") == "6"
    assert "LATIN SMALL LETTER X" in text
    assert row(text, "whole documents") == "none"


def test_only_what_is_found_is_shown(looked):
    quiet = printed(looked(["abcd" * 25]))
    assert "█" not in quiet, "there is only one length"
    assert row(quiet, "longest line") == "100 characters, in train"
    for title in ("Signs of trouble", "Validation text that also stands in training", "only in validation", "empty"):
        assert title not in quiet
    loud = printed(looked(["abcd\0" * 25, "", LONG], [LONG, "é"]))
    assert row(loud, "empty") == "1"
    assert row(loud, "only in validation") == "1: é"
    assert row(loud, "whole documents") == "1 different, 96.2 % of the validation text"
    assert row(loud, "for example") == LONG
    assert row(loud, "25") == "NUL characters, first in train, document 1:"
    assert re.search(r"^ +abcd<U\+0000>abcd<U\+0000>", loud, re.M)


def test_bars_grow_with_what_they_stand_for(looked):
    text = printed(looked(["x" * 3] * 30 + ["x" * 100] * 10))
    bars = {low: (len(bar), int(many)) for low, bar, many in re.findall(r"(\d+)-\d+ +(█+) (\d+)", text)}
    assert bars == {"2": (30, 30), "64": (10, 10)}
    text = printed(looked(["x" * 3] * 100 + ["x" * 100]))
    assert re.search(r"^ +64-127 +█ 1 *$", text, re.M), "one of a hundred is seen, be it less than a column"


def test_nothing_is_wider_than_the_page(looked):
    look = looked(["日本語のテキスト、" * 60 + "\0" + "x" * 100_001], ["吾輩は猫である" * 20], "tokenizer=char")
    for width in (60, 100):
        console = Console(width=width)
        assert all(console.measure(line).maximum <= width for line in printed(look, width).splitlines())


def test_colour_stands_in_for_bars(looked):
    look = looked(["some text of mine"])
    assert "s│o│m│e│·" in printed(look)
    assert "│" not in printed(look, colour=True)
    assert "\x1b[" in printed(look, colour=True)
    assert "\x1b[" not in printed(look)


def test_it_says_so_where_nothing_is_to_be_warned_of(looked):
    assert "Nothing to warn of." in printed(looked(["abc def " * 3000], ["abc " * 30]))
    assert "Nothing to warn of." not in printed(looked(["abc def " * 30]))
