"""What docs/ tells to type is made of settings that there are, with the tutorial's own variant; its links lead on."""

import re
import shlex
import shutil
import sys
from importlib import import_module

import pytest

import gpt.model.feedforward
from gpt.__main__ import VERBS, given
from gpt.cli import compose
from gpt.cli.composition import CONFIGS, groups_in
from gpt.cli.jobs import jobs_of
from gpt.config import ROOT, variant_class, variant_names
from gpt.generation.settings import SampleSettings
from gpt.training.settings import TrainSettings

PAGES = {file.name: file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("*.md"))}
TUTORIAL = PAGES["tutorial.md"]
SCRIPTS = {"train.py": TrainSettings, "data/prepare.py": TrainSettings, "sample.py": SampleSettings}


def blocks(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def commands(text):
    """The lines that are typed, whole: those of sh, and those after a $ whose output is no error."""
    lines = [line for block in blocks("sh", text) for line in re.sub(r"\\\n\s*", "", block).splitlines()]
    for block in blocks("text", text):
        answered = re.findall(r"^\$ (.*)\n?(.*)", re.sub(r"\\\n\s*", "", block), re.M)
        lines += [line for line, answer in answered if not answer.startswith("error: ")]
    typed = [shlex.split(line, comments=True) for line in lines]
    return [words for words in typed if words[:1] == ["python"] and words[1:3] != ["-m", "venv"] and "…" not in words]


COMMANDS = [(page, words) for page, text in PAGES.items() if page != "settings.md" for words in commands(text)]
"""Those of settings.md are examples of the configurations' own."""


def code(part):
    """The one block of the tutorial that holds this."""
    (block,) = [block for kind in ("python", "yaml") for block in blocks(kind, TUTORIAL) if part in block]
    return block


@pytest.fixture(scope="module")
def configs(tmp_path_factory):
    """configs/ and gpt/, with what the tutorial adds to both."""
    there, modules = tmp_path_factory.mktemp("configs") / "configs", tmp_path_factory.mktemp("feedforward")
    shutil.copytree(CONFIGS, there)
    (there / "model/feedforward/reglu2.yaml").write_text(code("name: reglu2"), encoding="utf-8")
    (modules / "reglu2.py").write_text(code("class Reglu2Config"), encoding="utf-8")
    package = gpt.model.feedforward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "__path__", [*package.__path__, str(modules)])
        forget()
        yield there
    sys.modules.pop("gpt.model.feedforward.reglu2", None)
    vars(package).pop("reglu2", None)
    forget()


def forget():
    for cached in (variant_names, variant_class):
        cached.cache_clear()


def called(words):
    """The yaml that a command starts from, its settings, and its arguments."""
    if words[1:3] == ["-m", "gpt"]:
        verb = VERBS[words[3]]
        return words[3], getattr(import_module(verb.module), verb.settings), given(verb, words[4:])
    return "sample" if words[1] == "sample.py" else "train", SCRIPTS[words[1]], words[2:]


def test_there_are_commands():
    pages = [page for page, _ in COMMANDS]
    assert pages.count("tutorial.md") >= 10
    assert pages.count("experiments.md") >= 15


@pytest.mark.parametrize("page, words", COMMANDS, ids=[f"{page}: {' '.join(words)}" for page, words in COMMANDS])
def test_commands_are_composed_of_settings_that_there_are(page, words, configs):
    if not (words[1:3] == ["-m", "gpt"] or words[1] in SCRIPTS):
        assert (ROOT / words[1]).exists()  # a script of another kind, which takes what it says
        return
    name, settings, argv = called(words)
    of_runs = ("resume=", "init=")  # that are not here
    argv = [word for word in argv if not word.startswith(of_runs)]
    jobs = [job.argv for job in jobs_of(argv, groups_in(configs))] if "-m" in argv else [argv]
    for job in jobs:
        compose(name, job, settings, configs)


def test_the_tutorial_s_own_test_passes(configs):
    told = {}
    exec(code("def test_reglu2_by_hand"), told)
    for values in ((2.0, 80.0), (-2.0, 0.0)):
        assert str(values) in code("def test_reglu2_by_hand")
        told["test_reglu2_by_hand"](*values)


def headings(text):
    """The headings as links name them."""
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", plain, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{name}" for name in PAGES)])
def test_links_lead_to_what_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), link
        assert not anchor or anchor in headings(file.read_text(encoding="utf-8")), link
