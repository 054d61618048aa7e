"""The page that --help prints: all that can be chosen and set, read off the typed settings and the yaml files."""

import pytest

from gpt.config import settings_of


@pytest.fixture
def page(end, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = end("-h", "steps=nonsense")
    assert (code, err) == (0, "")
    return out


def test_help_says_what_how_and_what_can_be_chosen(page: str):
    lines = [line.split() for line in page.splitlines()]
    assert page.startswith("run.py\nDo one thing well.\n\nUsage\n")
    assert "python run.py [GROUP=NAME ...] [KEY=VALUE ...]" in page
    assert "\nExamples\n  python run.py steps=4\n" in page
    assert ["model", "large", "small*"] in lines
    assert ["model/position", "none", "rope*"] in lines
    assert ["logger", "board", "console*"] in lines
    assert ["experiment", "debug", "fast"] in lines


def test_help_describes_every_setting_with_default_and_type(script, page: str):
    lines = [" ".join(line.split()) for line in page.splitlines()]
    for path in settings_of(script.settings):
        variant = path.endswith(".name")
        nested = path in ("dataset", "model", "optimizer", "logger", "model.position")
        assert variant or nested or any(line.startswith(f"{path}=") for line in lines), path
    assert "steps=3 Updates. (int)" in lines, "the yaml's value, where the class has no default"
    assert "prompt= The text to continue. (literal text)" in lines
    assert "budget=null Train for this long. (str | null)" in lines
    assert "debug=false Show the traceback of an error. (bool)" in lines
    assert "model.n_layer=4 Number of blocks. (int >= 1)" in lines


def test_help_lists_variants_with_their_settings(page: str):
    lines = [" ".join(line.split()) for line in page.splitlines()]
    here = lines.index("optimizer=adam * The adam one.")
    assert lines[here + 1 : here + 5] == [
        "optimizer.lr=0.001 Peak learning rate. (float)",
        "optimizer=sgd The sgd one.",
        "optimizer.lr=0.5 (float)",
        "optimizer.momentum=0.0 (float)",
    ]
    assert "model/position=none The none one." in lines
    assert "logger=console * The console one." in lines


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_help_fits_the_terminal_and_is_plain_without_one(end, monkeypatch: pytest.MonkeyPatch, columns: str):
    monkeypatch.setenv("COLUMNS", columns)
    page = end("--help").out
    assert max(len(line) for line in page.splitlines()) <= int(columns)
    assert "\x1b" not in page


def test_help_explains_presets_by_what_their_yaml_says(page: str):
    lines = [" ".join(line.split()) for line in page.splitlines()]
    here = lines.index("Presets (GROUP=NAME; what is typed beside one comes before it)")
    assert lines[here + 1 : here + 4] == [
        "experiment=fast Quick: one step. Then it ends.",
        "model=large Ten times as deep.",
        "",
    ], "neither experiment=debug, which says nothing, nor a variant, which its docstring explains"
    assert page.index("Presets") < page.index("Settings (KEY=default)")


def test_help_tells_of_sweeps(page: str):
    assert "-m, --multirun   run a job for each combination" in page
