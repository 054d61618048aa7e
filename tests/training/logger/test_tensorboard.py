import importlib.util
import math

import pytest
import yaml
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from gpt.config import UserError, parse
from gpt.training.logger.tensorboard import TensorboardConfig


def written(folder, name):
    """What TensorBoard would show: value by step."""
    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"tensors": 0})
    return {event.step: make_ndarray(event.tensor_proto).flat[0] for event in events.Reload().Tensors(name)}


def texts(folder, name):
    return {step: text.decode() for step, text in written(folder, f"{name}/text_summary").items()}


@pytest.fixture
def train(info, metrics, validation):
    def run(folder, steps, resumed_at=0):
        logger = parse(TensorboardConfig, {"name": "tensorboard"}).build()
        logger.start(info(folder, resumed_at))
        for step in steps:
            logger.log(metrics(step), step / 30)
        logger.log(validation(step, 2.5), step / 30)
        logger.sample(step, f"# after {step}\n\nthe army 日本 <b>")
        logger.finish()

    return run


def test_what_was_logged_is_read_back(tmp_path, train):
    train(tmp_path, [10, 20])
    assert written(tmp_path, "train/loss") == pytest.approx({10: 0.1, 20: 0.05})
    assert written(tmp_path, "train/skipped") == {10: 0, 20: 0}
    assert written(tmp_path, "tokens") == {10: 5120, 20: 10240}
    assert written(tmp_path, "validation/loss") == {20: 2.5}
    assert written(tmp_path, "validation/bits_per_byte") == {20: 1.25}
    with pytest.raises(KeyError):  # it is the axis
        written(tmp_path, "step")


def test_samples_are_shown_as_they_are(tmp_path, train):
    train(tmp_path, [10])
    assert texts(tmp_path, "samples") == {10: "    # after 10\n    \n    the army 日本 <b>"}


def test_the_configuration_is_there(tmp_path, train, info):
    train(tmp_path, [10])
    text = texts(tmp_path, "config")[0]
    assert yaml.safe_load(text) == info(tmp_path).run.settings


def test_a_resumed_run_goes_on_and_what_is_void_has_vanished(tmp_path, train):
    train(tmp_path, [10, 20, 30])
    train(tmp_path, [11, 21], resumed_at=10)
    assert written(tmp_path, "train/loss") == pytest.approx({10: 1 / 10, 11: 1 / 11, 21: 1 / 21})
    assert written(tmp_path, "validation/loss") == {21: 2.5}
    assert list(texts(tmp_path, "samples")) == [21]


def test_a_run_that_begins_anew_in_its_folder_has_no_other_past(tmp_path, train):
    train(tmp_path, [10, 20, 30])
    train(tmp_path, [5])
    assert list(written(tmp_path, "train/loss")) == [5]


def test_numbers_that_are_not_finite_are_logged(tmp_path, info, metrics):
    logger = TensorboardConfig().build()
    logger.start(info(tmp_path))
    logger.log({**metrics(10), "loss": math.nan}, 1.0)
    logger.finish()
    assert math.isnan(written(tmp_path, "train/loss")[10])


def test_nothing_is_written_outside_of_the_run_folder(tmp_path, monkeypatch, train):
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    train(tmp_path / "run", [10])
    assert {path.name for path in tmp_path.iterdir()} == {"cwd", "run"}
    assert not any((tmp_path / "cwd").iterdir())
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["tensorboard"]


def test_not_installed_is_told_before_anything_begins(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "gpt.training.logger.tensorboard.find_spec", lambda name: None if name == "tensorboard" else find(name)
    )
    with pytest.raises(UserError, match=r"^logger\.tensorboard: .*not installed; pip install tensorboard"):
        parse(TensorboardConfig, {"name": "tensorboard"}, "logger.tensorboard")
