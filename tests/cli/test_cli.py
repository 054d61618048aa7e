"""How a script ends: its work done, or one line and an exit code."""

import signal
import warnings

import pytest
import yaml

from gpt.config import UserError
from gpt.signals import Interrupted


def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(script):
    done = script("stpes=2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: stpes: there is no such setting; did you mean steps? see --help for all of them\n"


def test_the_task_gets_the_settings_and_the_folder(end):
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
def test_what_the_task_raises_is_one_line(end, error: Exception, code: int, told: str):
    assert end(error=error) == (code, "at work 3 None\n", f"error: {told}\n")


def test_a_task_may_end_with_a_code_of_its_own(end):
    assert end(error=SystemExit(143)) == (143, "at work 3 None\n", "")


@pytest.mark.parametrize("flag", ["--multi", "-n", "--steps=3", "--help=1"])
def test_another_flag_is_told(end, flag: str):
    told = f"error: {flag}: there is no such flag; there are --help, --cfg and -m, settings are key=value\n"
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
def test_debug_shows_the_traceback_as_well(end, argv: list[str], error: Exception | None, cause: str):
    told = end(*argv, error=error).err
    assert "Traceback" in told
    assert cause in told
    assert told.splitlines()[-1].startswith("error: ")
    assert "run again" not in told


@pytest.mark.parametrize("name, code", [("SIGINT", 130), ("SIGTERM", 143), ("SIGUSR1", 138), ("SIGHUP", 129)])
def test_a_signal_ends_with_its_code_and_a_word(script, name: str, code: int):
    with script.start("budget=sleep") as process:
        assert process.stdout.readline() == "asleep\n"
        process.send_signal(getattr(signal, name))
        assert process.communicate(timeout=60) == ("", "interrupted\n")
    assert process.returncode == code


def test_a_signal_that_c_code_drops_is_what_ends_it_all_the_same(script):
    done = script("budget=drop")
    assert (done.returncode, done.stderr) == (143, "interrupted\n")


@pytest.mark.parametrize("argv", [[], ["debug=true"]])
def test_what_an_interrupted_task_says_is_told_and_no_traceback(end, argv: list[str]):
    code, _, err = end(*argv, error=Interrupted(signal.SIGTERM, "saved step 7; go on with resume=runs/x"))
    assert (code, err) == (143, "saved step 7; go on with resume=runs/x\n")


def test_signals_and_warnings_are_as_before_when_a_script_has_ended(end):
    before = signal.getsignal(signal.SIGTERM), warnings.formatwarning
    end("steps=2")
    assert (signal.getsignal(signal.SIGTERM), warnings.formatwarning) == before


def test_a_warning_is_one_line(script):
    assert script("budget=warn").stderr == "warning: mind this\n"


@pytest.mark.parametrize("argument", ["budget=endless", "--cfg"])
def test_a_closed_pipe_is_no_error(script, argument: str):
    with script.start(argument) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_another_broken_pipe_is_an_error(script):
    done = script("budget=pipe")
    assert done.returncode == 1
    assert done.stderr.startswith("error: unexpected BrokenPipeError: a worker is gone; run again with debug=true")


def test_a_terminal_that_lacks_a_character_does_not_end_the_run(script):
    done = script("name=x私", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "x\\u79c1" in done.stdout


def test_cfg_prints_the_checked_configuration_and_does_nothing_more(script, end):
    argv = ["prompt=${HOME}: 私", "name=007", "optimizer=sgd"]
    code, out, err = end("--cfg", *argv)
    assert (code, err) == (0, "")
    printed = yaml.safe_load(out)
    assert printed == script.composed(*argv).model_dump()
    assert printed["optimizer"] == {"name": "sgd", "lr": 0.5, "momentum": 0.0}
    assert "私" in out


def test_cfg_refuses_what_is_wrong(end):
    assert end("--cfg", "steps=x") == (2, "", "error: steps: expected a valid integer, got 'x'\n")


def test_the_folder_of_a_sweep_needs_a_sweep(end):
    told = "error: hydra.sweep.dir: only a sweep has such a folder; add -m, or name the run's with hydra.run.dir\n"
    assert end("hydra.sweep.dir=x") == (2, "", told)
