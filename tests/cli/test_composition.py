"""Free text is literal, hydra composes, the typed settings check; a mistake is one line."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.cli import compose
from gpt.cli.composition import Line, groups_in, is_hydras
from gpt.config import UserError

HARD = [
    "What's up, doc? (yes=no)",
    "私は機械学習が大好きです",
    "🙂 👩‍👩‍👧",
    "${HOME}",
    "${oc.env:HOME}",
    "${name}",
    "${",
    "007",
    "2024",
    "true",
    "null",
    "???",
    "",
    " ",
    "'x'",
    '"x"',
    "a,b",
    "[a",
    "a=b",
    "# no comment",
    "~/x",
    "back\\",
    "two\nlines\r\n",
    "choice(1,2)",
    "text_" + "0" * 32,
]


@pytest.mark.parametrize("text", HARD)
@pytest.mark.parametrize("prefix", ["", "+", "++"])
def test_free_text_is_literal(script, prefix: str, text: str):
    argv = [f"{prefix}{key}={text}" for key in ("prompt", "name", "run", "dataset.path")]
    done = script.composed(*argv)
    assert [done.prompt, done.name, done.dataset.path] == [text] * 3
    assert done.run == os.path.expanduser(text)  # noqa: PTH111 - it is a folder


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(deadline=None, max_examples=50)
def test_any_text_is_literal(script, text: str):
    done = script.composed(f"name={text}", f"dataset.path={text}")
    assert (done.name, done.dataset.path) == (text, text)


def test_escapes_are_undone_in_prompt_and_stop_alone(script):
    path = r"C:\new,dir (1)/a=b.txt"
    done = script.composed(rf"prompt={path}", r"stop=\t\\n", rf"dataset.path={path}", r"name=\n")
    assert (done.prompt, done.stop) == ("C:\new,dir (1)/a=b.txt", "\t\\n")
    assert (done.dataset.path, done.name) == (path, r"\n")


def test_a_later_text_replaces_an_earlier_one(script):
    assert script.composed("name=a", "name=true").name == "true"


def test_a_text_can_be_referred_to_by_a_value(script):
    assert script.composed("name=${x}", "budget=for_${name}").budget == "for_${x}"


def test_text_survives_a_real_shell_and_process(script):
    done = script("prompt=What's up, doc? (yes=no)", "name=私は🙂", "dataset.path=${HOME}")
    assert done.stdout == """['私は🙂', "What's up, doc? (yes=no)", '${HOME}', None]\n"""


def test_hydra_composes(script):
    plain = script.composed()
    assert (plain.steps, plain.model.n_layer, plain.optimizer.lr, list(plain.logger)) == (
        3,
        4,
        0.001,
        ["console"],
    )
    argv = [
        "model=large",
        "model/position=rope",
        "+experiment=fast",
        "logger=[console,board]",
        "model.n_layer=7",
    ]
    done = script.composed(*argv)
    assert (done.steps, done.optimizer.name, done.optimizer.lr) == (1, "sgd", 0.5)
    assert (done.model.n_layer, done.model.position.name) == (7, "rope")
    assert list(done.logger) == ["console", "board"]


def test_an_integer_is_accepted_where_a_float_is_meant(script):
    assert script.composed("optimizer.lr=1").optimizer.lr == 1.0


def test_a_setting_of_no_yaml_is_set_and_deleted_ones_fall_back(script):
    assert script.composed("optimizer=sgd", "optimizer.momentum=0.9").optimizer.momentum == 0.9
    assert script.composed("~name").name == "x"


@pytest.mark.parametrize(
    "argv, folder",
    [
        ([], None),
        (["hydra.run.dir=out/1"], Path("out/1")),
        (["hydra.run.dir=/out/${name}", "name=${x} y"], Path("/out/${name}")),
        (["hydra.run.dir=2024, what's 実験"], Path("2024, what's 実験")),
        (["hydra.run.dir=true"], Path("true")),
    ],
)
def test_the_folder_asked_for_is_handed_on(script, argv: list[str], folder: Path | None):
    assert script.compose(*argv)[1] == folder


@pytest.mark.parametrize(
    "argument, message",
    [
        ("stpes=3", "stpes: there is no such setting; did you mean steps? see --help for all of them"),
        (
            "n_layer=3",
            "n_layer: there is no such setting; did you mean model.n_layer? see --help for all of them",
        ),
        (
            "optimizer.rl=1",
            "optimizer.rl: there is no such setting; did you mean optimizer.lr? see --help for all of them",
        ),
        ("modle=large", "modle: there is no such setting; did you mean model? see --help for all of them"),
        ("model.n_layer=abc", "model.n_layer: expected a valid integer, got 'abc'"),
        ("steps=null", "steps: expected a valid integer, got null"),
        ("steps=1.5", "steps: expected a valid integer, got 1.5"),
        ("model.n_layer=0", "model.n_layer: expected greater than or equal to 1, got 0"),
        ("optimizer=adm", "optimizer: there is no 'adm'; did you mean adam? there are adam, sgd"),
        ("optimizer=", "optimizer: there is no ''; there are adam, sgd"),
        ("optimizer=null", "optimizer: there is no 'null'; there are adam, sgd"),
        ("optimizer=7", "optimizer: there is no '7'; there are adam, sgd"),
        ("optimizer={a:1}", "optimizer: there is no \"{'a': 1}\"; there are adam, sgd"),
        ("logger=[console,7]", "logger: there is no '7'; there are board, console"),
        ("experiment=fats", "experiment: there is no 'fats'; did you mean fast? there are debug, fast"),
        ("logger=[console,bord]", "logger: there is no 'bord'; did you mean board? there are board, console"),
        ("logger=[foo]", "logger: there is no 'foo'; there are board, console"),
        ("model/position=rop", "model/position: there is no 'rop'; did you mean rope? there are none, rope"),
        ("model.position=rope", "model.position=rope: a choice is written model/position=rope"),
        (
            "model/positon=rope",
            "model/positon: there is no such choice; did you mean model/position? there are experiment, "
            "logger, model, model/position, optimizer",
        ),
        ("model.position.name=alibi", "model.position.name=alibi: a choice is written model/position=alibi"),
        ("steps=[1,", "steps=[1,: cannot be read; quote the value twice, as in 'steps=\"…\"'"),
        ("budget=五分", "budget=五分: cannot be read; quote the value twice, as in 'budget=\"…\"'"),
        ("steps=1,2", "steps=1,2: takes one value; add -m to run each, or write a list as 'steps=[a,b]'"),
        ("steps=range(1,3)", "steps=range(1,3): takes one value; add -m to run each, or write a list as 'steps=[a,b]'"),
        (
            "optimizer=adam,sgd",
            "optimizer=adam,sgd: takes one value; add -m to run each, or write a list as 'optimizer=[a,b]'",
        ),
        ("steps=${foo}", "steps: Interpolation key 'foo' not found; see --help for what there is"),
        ("steps=${steps}", "steps: Recursive interpolation detected; see --help for what there is"),
        ("steps=???", "steps: this setting is required; give it, as in steps=…"),
        (
            "steps",
            "steps: a setting is written key=value, a text with spaces key='a text'; see --help",
        ),
        (
            "=3",
            "=3: a setting is written key=value, a text with spaces key='a text'; see --help",
        ),
        ("hydra.run.dir=", "hydra.run.dir: expected a folder, got nothing"),
    ],
)
def test_a_mistake_is_one_line(script, argument: str, message: str):
    assert script.refused(argument) == message


@pytest.mark.parametrize(
    "argument, named",
    [
        ("~stpes", "stpes"),
        ("hydra.rnu.dir=x", "hydra.rnu"),
        ("hydra/launcher=foo", "hydra/launcher"),
        ("a b=3", "a b"),
        ("optimizer@other=sgd", "optimizer@other"),
        ("steps=${oc.env:NO_SUCH_VARIABLE}", "NO_SUCH_VARIABLE"),
    ],
)
def test_what_hydra_refuses_is_told_by_name(script, argument: str, named: str):
    assert named in script.refused(argument)


def test_a_message_shows_the_text_and_not_its_placeholder(script):
    assert "text_" not in script.refused("my name path=a,b")


def test_a_missing_folder_of_configurations_is_told(script, tmp_path: Path):
    with pytest.raises(UserError, match="no such folder; install from a checkout"):
        compose("run", [], script.settings, tmp_path / "none")


def test_a_group_that_this_script_does_not_take_is_told(script):
    with pytest.raises(UserError, match="^optimizer: a choice of other commands, not of this one; see --help"):
        compose("plain", ["optimizer=adam"], script.settings, script.configs)


@pytest.mark.parametrize(
    "argument, path",
    [
        ("model.n_layer=6", "model.n_layer"),
        ("++model.n_layer=6", "model.n_layer"),
        ("model/position=none", "model.position"),
        ("model=large", "model"),
        ("+optimizer=sgd", "optimizer"),
        ("logger=[console]", "logger"),
        ("~name", "name"),
        ("prompt=a=b", "prompt"),
        ("dataset.path=/x/y.z", "dataset.path"),
        ("experiment=fast", "optimizer steps"),  # what the recipe sets
        ("hydra.run.dir=x", "hydra.run.dir"),
    ],
)
def test_what_is_typed_is_told_to_the_settings(script, argument: str, path: str):
    seen = []

    class Stored(script.settings):
        @classmethod
        def completed(cls, data, typed, run_dir):
            seen.append((typed, run_dir))
            return data | {"steps": 9}

    settings, _ = compose("run", [argument], Stored, script.configs)
    assert seen == [(frozenset(path.split()), Path("x") if path == "hydra.run.dir" else None)]
    assert settings.steps == 9, "what is checked is what was completed"


def test_texts_are_whole_when_settings_are_completed(script):
    class Stored(script.settings):
        @classmethod
        def completed(cls, data, typed, run_dir):
            return data | {"prompt": data["name"] * 2}

    assert compose("run", ["name=${a}, "], Stored, script.configs)[0].prompt == "${a}, ${a}, "


def test_a_choice_for_another_place_is_typed_too(script):
    line = Line(["+optimizer@model=sgd", "experiment@model=fast"], groups_in(script.configs))
    assert line.typed(script.settings, script.configs) == {"optimizer", "steps"}


@pytest.mark.parametrize(
    "key, hydras", [("hydra", True), ("hydra.job.name", True), ("hydra/launcher", True), ("hydration.rate", False)]
)
def test_which_settings_are_hydras_own(key: str, hydras: bool):
    assert is_hydras(key) == hydras
