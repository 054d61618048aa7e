"""Pictures, whatever fonts and characters."""

import subprocess
import sys
import warnings

import pytest
from matplotlib.image import imread

from gpt.insight import plot
from gpt.insight.plot import drawable, families, new_figure, save

SENTENCE = "私は機械学習が大好きです"


@pytest.fixture(params=["installed", "shipped"])
def fonts(request, monkeypatch):
    """Those of this machine, and those of one that has no Japanese font."""
    if request.param == "shipped":
        monkeypatch.setattr(plot, "CJK", ())
    families.cache_clear()
    plot._characters.cache_clear()
    yield request.param
    families.cache_clear()
    plot._characters.cache_clear()


def darkness(path):
    return float(1 - imread(path)[..., :3].mean())


def test_a_png_of_the_size_that_was_asked_for(tmp_path):
    figure, axes = new_figure(rows=2, columns=3, width=5, height=2.5)
    assert axes.shape == (2, 3)
    path = save(figure, tmp_path / "made" / "on the way" / "私.png")
    assert imread(path).shape == (2.5 * plot.DPI, 5 * plot.DPI, 4)
    assert [file.name for file in path.parent.iterdir()] == ["私.png"]


def test_the_same_figure_is_the_same_file(tmp_path):
    files = []
    for name in ("a.png", "b.png"):
        figure, axes = new_figure()
        axes[0, 0].plot([1, 2], [3, 4])
        files.append(save(figure, tmp_path / name).read_bytes())
    assert files[0] == files[1]


def test_japanese_is_drawn_without_a_warning_in_titles_and_ticks(fonts, tmp_path):
    figure, axes = new_figure()
    axes[0, 0].set_title(drawable(SENTENCE))
    axes[0, 0].set_xticks(range(4), [drawable(text) for text in ("私 1/3", "·↵←⇥□", "<E7>", "$x_1$ and $y$")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(figure, tmp_path / "a.png")
    assert families()[1] == "IPAexGothic" or fonts == "installed"


def test_each_character_has_a_glyph_of_its_own(fonts, tmp_path):
    """Missing ones would all be the same box."""
    looks = set()
    for character in SENTENCE:
        figure, _ = new_figure(width=1, height=1)
        figure.axes[0].set_axis_off()
        figure.text(0.2, 0.2, character, fontsize=40)
        looks.add(save(figure, tmp_path / "one.png").read_bytes())
        assert darkness(tmp_path / "one.png") > 0.01
    assert len(looks) == len(set(SENTENCE))


def test_a_character_that_no_font_has_and_a_dollar(fonts):
    assert drawable("\U000f0000") == "□"
    assert drawable(SENTENCE) == SENTENCE
    assert drawable("$5 or $6") == r"\$5 or \$6"


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.png"
    figure, axes = new_figure()
    save(figure, path)
    before = path.read_bytes()
    axes[0, 0].set_title("$broken^$")
    with pytest.raises(ValueError, match="broken"):
        save(figure, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_no_pyplot_and_no_display(tmp_path):
    code = (
        "import sys; from pathlib import Path; from gpt.insight import plot; plot.CJK = (); "
        "plot.save(plot.new_figure()[0], Path(sys.argv[1])); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "a.png"], check=False).returncode == 0
    assert (tmp_path / "a.png").is_file()
