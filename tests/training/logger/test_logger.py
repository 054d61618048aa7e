import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console as Terminal

from gpt.training.logger import Logger, Loggers, RunInfo, grouped
from gpt.training.logger.console import Console


class Broken(Logger):
    def log(self, metrics, progress):
        raise OSError("no space left")


class Recorder(Logger):
    def __init__(self):
        self.calls = []

    def start(self, info):
        self.calls.append("start")

    def log(self, metrics, progress):
        self.calls.append(metrics["step"])

    def finish(self):
        self.calls.append("finish")


def test_a_logger_that_fails_is_left_out_and_stops_nothing():
    recorder = Recorder()
    loggers = Loggers([Broken(), recorder])
    loggers.start(None)
    with pytest.warns(UserWarning, match="Broken failed and is left out from here on: no space left"):
        loggers.log({"step": 1}, 0.5)
    loggers.log({"step": 2}, 1.0)
    loggers.finish()
    assert loggers.loggers == [recorder]
    assert recorder.calls == ["start", 1, 2, "finish"]


@pytest.mark.parametrize("error", [ValueError, KeyError, RuntimeError, ImportError])
def test_whatever_goes_wrong_in_a_logger_stays_there(error):
    class Failing(Logger):
        def log(self, metrics, progress):
            raise error("why")

    with pytest.warns(UserWarning, match="Failing failed"):
        Loggers([Failing()]).log({"step": 1}, 0.5)


def test_ctrl_c_is_no_failure_of_a_logger():
    class Interrupted(Logger):
        def log(self, metrics, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Loggers([Interrupted()]).log({"step": 1}, 0.5)


def test_samples_are_wanted_where_one_logger_wants_them():
    class Reader(Recorder):
        def sample(self, step, text):
            self.calls.append((step, text))

    reader, recorder = Reader(), Recorder()
    assert not Loggers([]).want_samples
    assert not Loggers([recorder]).want_samples
    loggers = Loggers([recorder, reader])
    assert loggers.want_samples
    loggers.sample(7, "the army")
    assert (reader.calls, recorder.calls) == ([(7, "the army")], [])


def test_metrics_are_grouped_by_what_they_are_of():
    assert grouped({"step": 7, "tokens": 9, "elapsed": 1.5, "validation_bits_per_byte": 2.0, "grad_norm": 3.0}) == {
        "step": 7, "tokens": 9, "elapsed": 1.5, "validation/bits_per_byte": 2.0, "train/grad_norm": 3.0,
    }  # fmt: skip


def console(terminal):
    out = io.StringIO()
    return Console(Terminal(file=out, force_terminal=terminal, width=100, highlight=False)), out


def training(step, loss=2.5):
    return {"step": step, "loss": loss, "tokens_per_second": 12345.6, "mfu": 0.123}


def test_plain_lines_where_there_is_no_terminal():
    logger, out = console(terminal=False)
    logger.start(RunInfo(SimpleNamespace(folder=Path("there")), [("model", "a small one")]))
    for step in range(1, 101):
        logger.log(training(step), step / 100)
    logger.log({"step": 100, "validation_loss": 3.25, "validation_bits_per_byte": 1.5}, 1.0)
    logger.finish()
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    assert lines[:2] == ["run       there", "model     a small one"]
    assert lines[-1] == "step 100: validation loss 3.2500 (1.5000 bits per byte)"
    progress = [line for line in lines if "tokens/s" in line]
    assert 15 <= len(progress) <= 21
    assert progress[-1] == "step 100  loss 2.500  12,346 tokens/s (12% of peak)  100%"


def test_plain_lines_tell_how_long_it_still_takes():
    """By a clock on which a hundredth takes 3 s, of a run that was left at a half."""
    logger, out = console(terminal=False)
    now = 0.0
    logger.bar.get_time = lambda: now
    logger.start(RunInfo(SimpleNamespace(folder=Path("there")), [], resumed_at=50))
    for step in (50, 51, 60, 80):
        now = step * 3.0
        logger.log(training(step), step / 100)
    assert [line.rpartition("%")[2] for line in out.getvalue().splitlines()[1:]] == [
        "",
        "  about 2.0 min left",
        "  about 1.0 min left",
    ]


def test_a_bar_where_there_is_one():
    logger, out = console(terminal=True)
    logger.start(RunInfo(SimpleNamespace(folder=Path("there")), []))
    logger.log(training(7), 0.5)
    assert logger.bar.live.is_started
    logger.finish()
    assert not logger.bar.live.is_started, "the terminal is given back"
    shown = out.getvalue()
    assert "step 7" in shown
    assert "2.500" in shown
    assert "50%" in shown
