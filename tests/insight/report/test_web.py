"""What stands on the page of a run."""

import json
import re
import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpt.insight.record import read
from gpt.insight.report.web import SAMPLES, as_html, differing, few
from gpt.run_notes import Sample, append_sample, write_summary

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def folder(trained):
    made = trained("run", "optimizer=adamw", f"name={HOSTILE}", losses=[5.0, 3.0, 4.0])
    append_sample(made, Sample(10, HOSTILE))
    append_sample(made, Sample(30, "a text\nof two lines"))
    write_summary(made, {"model": "few parameters", "machine": HOSTILE})
    return made


def data_of(html):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.S)[1])


def plain(html):
    """The page's words, without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_what_came_of_it_is_told(folder):
    words = plain(as_html(read(folder)))
    assert f" {folder.parent.name}/run " in words
    assert (
        "validation 3.0000 nats per token (perplexity 20.1), 2.0000 bits per byte, the lowest, after step 20" in words
    )
    assert "at the end 4.0000 nats per token on the validation split" in words
    assert "training loss 4.5000 nats per token" in words
    assert "length 30 steps, 3,000 tokens time 30.0 s of training speed 200 tokens/s" in words
    assert "computed on cpu in fp32, not compiled" in words
    assert "model few parameters" in words


def test_a_run_that_was_not_named_is_called_by_its_folder(trained):
    assert "<h1>plain</h1>" in as_html(read(trained("plain")))


def test_settings_samples_and_the_command(folder):
    html = as_html(read(folder))
    assert '<tr><th scope="row">optimizer</th><td>adamw</td><td class="soft">muon</td></tr>' in html
    assert '<tr><th scope="row">clip</th><td>1.0</td></tr>' in html  # of all
    assert "<blockquote>a text\nof two lines</blockquote>" in html
    words = plain(html)
    assert words.index("after step 30") < words.index("after step 10"), "the last one first"
    assert "python train.py" in words


def test_of_another_variant_only_what_is_not_as_it_comes_is_listed(trained):
    run = read(trained("adamw", "optimizer=adamw", "optimizer.beta2=0.99", "dataset=text", "dataset.path=notes.txt"))
    listed = {path: (now, before) for path, now, before in differing(run.settings)}
    assert listed["optimizer"] == ("adamw", "muon")
    assert listed["optimizer.beta2"] == ("0.99", "0.95")
    assert {path for path in listed if path.startswith(("optimizer.", "dataset."))} == {
        "optimizer.beta2",
        "dataset.path",
    }


def test_all_charts_have_their_curves(folder):
    charts = {one["title"]: one for one in data_of(as_html(read(folder)))["charts"]}
    assert list(charts) == ["Loss", "Learning rate", "Norm of the gradient", "Speed"]  # memory was not logged
    training, validation = charts["Loss"]["series"]
    assert (training["name"], training["y"]) == ("training", [5.5, 3.5, 4.5])
    assert (validation["name"], validation["y"]) == ("validation", [5, 3, 4])
    assert charts["Learning rate"]["series"][0]["y"] == [0.1, 0.1, 0.1]


def test_texts_are_text_and_nothing_is_fetched(folder):
    html = as_html(read(folder))
    assert html.count("<script") == 2
    assert "<img" not in html
    assert not re.search(r"(?:src|href)=\"(?!data:)|@import|url\(|https?:", html)


def test_memory_is_shown_in_gb(folder):
    run = read(folder)
    run = replace(run, columns={**run.columns, "memory": run.columns["loss"] * 1e9})
    (memory,) = [one for one in data_of(as_html(run))["charts"] if one["title"].startswith("Memory")]
    assert (memory["unit"], memory["zero"], memory["series"][0]["y"]) == ("GB", True, [5.5, 3.5, 4.5])


def test_a_run_that_has_nothing_yet(trained):
    words = plain(as_html(read(trained("run", losses=[], done=0))))
    assert "status no checkpoint length 0 steps, 0 tokens" in words
    assert "What it wrote" not in words


def test_a_configuration_of_another_version_is_shown_as_it_is(folder):
    (folder / "config.yaml").write_text("steps: 5\nfuture: 1\n")
    words = plain(as_html(read(folder)))
    assert "damaged: future: there is no such setting" in words
    assert "To repeat it" not in words


@pytest.mark.parametrize("many", [0, 1, SAMPLES, SAMPLES + 1, 1000])
def test_of_many_samples_the_first_and_the_last_are_shown(many):
    shown = few([SimpleNamespace(step=step) for step in range(many)])
    assert len(shown) == min(many, SAMPLES)
    if many:
        assert (shown[0].step, shown[-1].step) == (many - 1, 0)
    assert len({sample.step for sample in shown}) == len(shown)


SEES = """
told.charts = document.querySelectorAll("canvas").length;
told.title = document.title;
told.sample = document.querySelectorAll("blockquote")[1].textContent;
told.folded = document.querySelectorAll("details").length;
"""


@pytest.mark.parametrize("width", [1280, 500])
def test_in_a_browser(folder, tmp_path, browser, width):
    file = tmp_path / "report.html"
    file.write_text(as_html(read(folder)), encoding="utf-8")
    told, console = browser(file, SEES, width)
    assert (told["errors"], console, told["wider"]) == ([], [], False)
    assert (told["charts"], told["sample"], told["title"]) == (4, HOSTILE, f"{HOSTILE}: finished")
    assert told["folded"] == 7


def test_the_command_is_quoted_for_a_shell(folder):
    words = re.search(r'<pre class="command">(.*?)</pre>', as_html(read(folder)), re.S)[1]
    typed = words.replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'").replace("&#34;", '"')
    assert f"name={HOSTILE}" in shlex.split(typed)
