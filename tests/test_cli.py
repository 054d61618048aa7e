"""The command line: free text is literal, hydra composes, a mistake is one line and exit code 2."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from gpt.cli import compose, main
from gpt.config import Choice, Config, UserError, Variant, settings_of

TREE = {
    "run.yaml": "defaults:\n  - model: small\n  - optimizer: adam\n  - logger: [console]\n"
    "  - _self_\n  - experiment: null\nname: gpt\nsteps: 3\n",
    "plain.yaml": "steps: 3\n",
    "model/small.yaml": "defaults:\n  - position: rope\n  - _self_\nn_layer: 4\n",
    "model/large.yaml": "defaults:\n  - position: none\n  - _self_\nn_layer: 40\n",
    "model/position/rope.yaml": "name: rope\n",
    "model/position/none.yaml": "name: none\n",
    "optimizer/adam.yaml": "name: adam\nlr: 0.001\n",
    "optimizer/sgd.yaml": "name: sgd\nlr: 0.5\n",
    "logger/console.yaml": "console:\n  name: console\n",
    "logger/board.yaml": "board:\n  name: board\n",
    "experiment/debug.yaml": "# @package _global_\ndebug: true\n",
    "experiment/fast.yaml": "# @package _global_\ndefaults:\n  - override /optimizer: sgd\nsteps: 1\n",
}

PARTS = "parts_for_test_cli"
VARIANTS = {
    "position": {"rope": "    base: float = 10000.0\n", "none": ""},
    "optimizer": {
        "adam": "    lr: float = 0.1\n    '''Peak learning rate.'''\n",
        "sgd": "    lr: float = 0.1\n    momentum: float = 0.0\n",
    },
    "logger": {"console": "", "board": ""},
}


class Dataset(Config):
    """Text."""

    path: str = "here"
    """Where it lies."""


class Model(Config):
    """Sizes."""

    n_layer: int = Field(4, ge=1)
    """Number of blocks."""
    position: Annotated[Variant, Choice(f"{PARTS}.position", "model.position")]
    """Where a token stands."""


class Settings(Config):
    """Do one thing well.

    Examples:
        python run.py steps=4
    """

    name: str = "x"
    """What the run is called."""
    prompt: str = ""
    """The text to continue."""
    stop: str = ""
    """Where to end."""
    run: str = "latest"
    """Which run."""
    steps: int
    """Updates."""
    budget: str | None = None
    """Train for this long."""
    debug: bool = False
    """Show the traceback of an error."""
    dataset: Dataset = Dataset()
    """Text."""
    model: Model
    """Sizes."""
    optimizer: Annotated[Variant, Choice(f"{PARTS}.optimizer", "optimizer")]
    """How gradients become updates."""
    logger: dict[str, Annotated[Variant, Choice(f"{PARTS}.logger", "logger.*")]]
    """Where metrics are shown."""


class Script(NamedTuple):
    """A script in a folder of its own, beside its tree of configurations."""

    file: Path
    configs: Path

    def __call__(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, self.file, *argv],
            cwd=self.file.parent,
            env={**os.environ, **env},
            capture_output=True,
            encoding="utf-8",
        )


TASKS = """
import sys, time
from pathlib import Path
sys.path[:0] = [{here!r}, {tests!r}]
from gpt import cli
from test_cli import Settings

def task(settings, run_dir):
    match settings.name:
        case "sleep": print("asleep", flush=True); time.sleep(60)
        case "pipe": raise BrokenPipeError("a worker is gone")
        case "endless":
            while True: print("y" * 1000)
        case _: print([settings.name, settings.prompt, settings.dataset.path, run_dir])

cli.main("run", Settings, task, Path({configs!r}))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    folder = tmp_path_factory.mktemp("script")
    for name, text in TREE.items():
        _write(folder / "configs" / name, text)
    for package, variants in VARIANTS.items():
        _write(folder / PARTS / package / "__init__.py", "")
        for name, body in variants.items():
            about = f"class V(Variant):\n    '''The {name} one.'''\n\n{body}"
            _write(folder / PARTS / package / f"{name}.py", f"from gpt.config import Variant\n{about}")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        text = TASKS.format(here=str(folder), tests=str(Path(__file__).parent), configs=str(folder / "configs"))
        _write(folder / "work" / "run.py", text)
        yield Script(folder / "work" / "run.py", folder / "configs")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def composed(script: Script, *argv: str) -> Settings:
    return compose("run", argv, Settings, script.configs)[0]


def refused(script: Script, *argv: str) -> str:
    with pytest.raises(UserError) as caught:
        compose("run", argv, Settings, script.configs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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
def test_free_text_is_literal(script: Script, prefix: str, text: str) -> None:
    argv = [f"{prefix}{key}={text}" for key in ("prompt", "name", "run", "dataset.path")]
    done = composed(script, *argv)
    assert [done.prompt, done.name, done.run, done.dataset.path] == [text] * 4


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(deadline=None, max_examples=50)
def test_any_text_is_literal(script: Script, text: str) -> None:
    done = composed(script, f"name={text}", f"dataset.path={text}")
    assert (done.name, done.dataset.path) == (text, text)


def test_escapes_are_undone_in_prompt_and_stop_alone(script: Script) -> None:
    path = r"C:\new,dir (1)/a=b.txt"
    done = composed(script, rf"prompt={path}", r"stop=\t\\n", rf"dataset.path={path}", r"name=\n")
    assert (done.prompt, done.stop) == ("C:\new,dir (1)/a=b.txt", "\t\\n")
    assert (done.dataset.path, done.name) == (path, r"\n")


def test_a_later_text_replaces_an_earlier_one(script: Script) -> None:
    assert composed(script, "name=a", "name=true").name == "true"


def test_a_text_can_be_referred_to_by_a_value(script: Script) -> None:
    assert composed(script, "name=${x}", "budget=for_${name}").budget == "for_${x}"


def test_text_survives_a_real_shell_and_process(script: Script) -> None:
    done = script("prompt=What's up, doc? (yes=no)", "name=私は🙂", "dataset.path=${HOME}")
    assert done.stdout == """['私は🙂', "What's up, doc? (yes=no)", '${HOME}', None]\n"""


def test_hydra_composes(script: Script) -> None:
    plain = composed(script)
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
    done = composed(script, *argv)
    assert (done.steps, done.optimizer.name, done.optimizer.lr) == (1, "sgd", 0.5)
    assert (done.model.n_layer, done.model.position.name) == (7, "rope")
    assert list(done.logger) == ["console", "board"]


def test_an_integer_is_accepted_where_a_float_is_meant(script: Script) -> None:
    assert composed(script, "optimizer.lr=1").optimizer.lr == 1.0


def test_a_setting_of_no_yaml_is_set_and_deleted_ones_fall_back(script: Script) -> None:
    assert composed(script, "optimizer=sgd", "optimizer.momentum=0.9").optimizer.momentum == 0.9
    assert composed(script, "~name").name == "x"


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
def test_the_folder_asked_for_is_handed_on(script: Script, argv: list[str], folder: Path | None) -> None:
    assert compose("run", argv, Settings, script.configs)[1] == folder


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
        ("steps=1,2", "steps=1,2: takes one value; a list is written 'steps=[a,b]'"),
        ("steps=range(1,3)", "steps=range(1,3): takes one value; a list is written 'steps=[a,b]'"),
        ("optimizer=adam,sgd", "optimizer=adam,sgd: takes one value; a list is written 'optimizer=[a,b]'"),
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
def test_a_mistake_is_one_line(script: Script, argument: str, message: str) -> None:
    assert refused(script, argument) == message


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
def test_what_hydra_refuses_is_told_by_name(script: Script, argument: str, named: str) -> None:
    assert named in refused(script, argument)


def test_a_message_shows_the_text_and_not_its_placeholder(script: Script) -> None:
    assert "text_" not in refused(script, "my name path=a,b")


def test_a_missing_folder_of_configurations_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder; install from a checkout"):
        compose("run", [], Settings, tmp_path / "none")


def test_a_group_that_this_script_does_not_take_is_told(script: Script) -> None:
    with pytest.raises(UserError, match="Could not override 'optimizer'"):
        compose("plain", ["optimizer=adam"], Settings, script.configs)


def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(script: Script) -> None:
    done = script("stpes=2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: stpes: there is no such setting; did you mean steps? see --help for all of them\n"


class Ended(NamedTuple):
    """How `main` ended in this process."""

    code: object
    out: str
    err: str


@pytest.fixture
def end(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    def end(*argv: str, error: BaseException | None = None) -> Ended:
        def task(settings: Settings, run_dir: Path | None) -> None:
            print("at work", settings.steps, run_dir)
            if error is not None:
                raise error

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["run.py", *argv])
        code: object = 0
        try:
            main("run", Settings, task, script.configs)
        except SystemExit as ended:
            code = ended.code
        assert list(tmp_path.iterdir()) == [], "something was left behind"
        return Ended(code, *capsys.readouterr())

    return end


def test_the_task_gets_the_settings_and_the_folder(end: Callable[..., Ended]) -> None:
    assert end("steps=2", "hydra.run.dir=out") == (0, "at work 2 out\n", "")


@pytest.mark.parametrize(
    "error, code, told",
    [
        (UserError("steps: too many;\ntake fewer"), 2, "steps: too many; take fewer"),
        (
            RuntimeError("two\nlines"),
            1,
            "unexpected RuntimeError: two lines; run again with debug=true for the traceback",
        ),
        (MemoryError(), 1, "unexpected MemoryError: ; run again with debug=true for the traceback"),
    ],
)
def test_what_the_task_raises_is_one_line(end: Callable[..., Ended], error: Exception, code: int, told: str) -> None:
    assert end(error=error) == (code, "at work 3 None\n", f"error: {told}\n")


def test_a_task_may_end_with_a_code_of_its_own(end: Callable[..., Ended]) -> None:
    assert end(error=SystemExit(143)) == (143, "at work 3 None\n", "")


@pytest.mark.parametrize("flag", ["--multirun", "-m", "--steps=3", "--help=1"])
def test_another_flag_is_told(end: Callable[..., Ended], flag: str) -> None:
    told = f"error: {flag}: there is no such flag; there are --help and --cfg, settings are key=value\n"
    assert end(flag) == (2, "", told)


@pytest.mark.parametrize(
    "argv, error, cause",
    [
        (["debug=true"], RuntimeError("two\nlines"), "RuntimeError: two"),
        (["debug=True"], UserError("steps: too many"), "UserError: steps"),
        (["optimizer=adm", "debug=true"], None, "MissingConfigException"),
        (["experiment=debug"], RuntimeError("two\nlines"), "RuntimeError: two"),
    ],
)
def test_debug_shows_the_traceback_as_well(
    end: Callable[..., Ended], argv: list[str], error: Exception | None, cause: str
) -> None:
    told = end(*argv, error=error).err
    assert "Traceback" in told
    assert cause in told
    assert told.splitlines()[-1].startswith("error: ")
    assert "run again" not in told


def test_ctrl_c_ends_with_130_and_a_word(script: Script) -> None:
    argv = [sys.executable, script.file, "name=sleep"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asleep\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "interrupted\n")
    assert process.returncode == 130


@pytest.mark.parametrize("argument", ["name=endless", "--cfg"])
def test_a_closed_pipe_is_no_error(script: Script, argument: str) -> None:
    argv = [sys.executable, script.file, argument]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_another_broken_pipe_is_an_error(script: Script) -> None:
    done = script("name=pipe")
    assert done.returncode == 1
    assert done.stderr.startswith("error: unexpected BrokenPipeError: a worker is gone; run again with debug=true")


def test_a_terminal_that_lacks_a_character_does_not_end_the_run(script: Script) -> None:
    done = script("name=x私", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "x\\u79c1" in done.stdout


def test_cfg_prints_the_checked_configuration_and_does_nothing_more(script: Script, end: Callable[..., Ended]) -> None:
    argv = ["prompt=${HOME}: 私", "name=007", "optimizer=sgd"]
    code, out, err = end("--cfg", *argv)
    assert (code, err) == (0, "")
    printed = yaml.safe_load(out)
    assert printed == composed(script, *argv).model_dump()
    assert printed["optimizer"] == {"name": "sgd", "lr": 0.5, "momentum": 0.0}
    assert "私" in out


def test_cfg_refuses_what_is_wrong(end: Callable[..., Ended]) -> None:
    assert end("--cfg", "steps=x") == (2, "", "error: steps: expected a valid integer, got 'x'\n")


@pytest.fixture
def page(end: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = end("-h", "steps=nonsense")
    assert (code, err) == (0, "")
    return out


def test_help_says_what_how_and_what_can_be_chosen(page: str) -> None:
    lines = [line.split() for line in page.splitlines()]
    assert page.startswith("run.py\nDo one thing well.\n\nUsage\n")
    assert "python run.py [GROUP=NAME ...] [KEY=VALUE ...]" in page
    assert "\nExamples\n  python run.py steps=4\n" in page
    assert ["model", "large", "small*"] in lines
    assert ["model/position", "none", "rope*"] in lines
    assert ["logger", "board", "console*"] in lines
    assert ["experiment", "debug", "fast"] in lines


def test_help_describes_every_setting_with_default_and_type(page: str) -> None:
    lines = [" ".join(line.split()) for line in page.splitlines()]
    for path in settings_of(Settings):
        variant = path.endswith(".name")
        nested = path in ("dataset", "model", "optimizer", "logger", "model.position")
        assert variant or nested or any(line.startswith(f"{path}=") for line in lines), path
    assert "steps=3 Updates. (int)" in lines, "the yaml's value, where the class has no default"
    assert "prompt= The text to continue. (literal text)" in lines
    assert "budget=null Train for this long. (str | null)" in lines
    assert "debug=false Show the traceback of an error. (bool)" in lines
    assert "model.n_layer=4 Number of blocks. (int >= 1)" in lines


def test_help_lists_variants_with_their_settings(page: str) -> None:
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
def test_help_fits_the_terminal_and_is_plain_without_one(
    end: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    page = end("--help").out
    assert max(len(line) for line in page.splitlines()) <= int(columns)
    assert "\x1b" not in page
