"""What a run's folder tells, however far it came and whatever became of it."""

import math

import pytest

from gpt.files import hold
from gpt.insight.record import number, read


def test_numbers_of_a_run(trained):
    """Three evaluations, of which the second is the best; the median of three speeds."""
    run = read(trained("run", losses=[5.0, 3.0, 4.0], speeds=[100.0, 900.0, 300.0]))
    assert run.status == "finished"
    assert (run.at_best("validation_loss"), run.at_best("validation_bits_per_byte"), run.at_best("step")) == (
        3.0,
        2.0,
        20,
    )
    assert (run.last("loss"), run.median("tokens_per_second"), run.seconds) == (4.5, 300.0, 30.0)
    assert run.name == str(run.folder)


def test_a_run_that_was_not_evaluated_has_no_loss(trained):
    run = read(trained("run", losses=[math.nan]))
    assert (run.best, run.at_best("validation_loss"), run.last("loss")) == (None, None, None)


@pytest.mark.parametrize(
    "more, done, status",
    [
        (["steps=30"], 30, "finished"),
        (["steps=40"], 30, "unfinished: step 30 of 40"),
        (["steps=40", "budget=1min"], 30, "unfinished: 30 s of 1min"),
        (["steps=40", "budget=30s"], 30, "finished"),
        ([], 0, "no checkpoint"),
    ],
)
def test_how_far_a_run_is(trained, more, done, status):
    assert read(trained("run", *more, done=done)).status == status


def test_a_run_that_is_trained_now(trained):
    """The last row tells how far it is, which is further than the last checkpoint."""
    folder = trained("run", "steps=40", done=10)
    descriptor = hold(folder)
    if descriptor is None:
        pytest.skip("needs locks")
    assert read(folder).status == "running: step 30 of 40"


@pytest.mark.parametrize(
    "file, content, status",
    [
        ("config.yaml", "{", "damaged: config.yaml: this is no YAML of settings, so the file is damaged"),
        ("config.yaml", "steps: many", "damaged: steps: expected a valid integer, got 'many'"),
        ("metrics.csv", "a,b\n", "damaged: metrics.csv: these are no metrics of a run"),
        (
            "checkpoints/step_00000030/state.json",
            "[]",
            "damaged: checkpoints/step_00000030/state.json: a JSON object is expected, so the file is damaged",
        ),
    ],
)
def test_damage_is_told_and_the_rest_is_read(trained, file, content, status):
    folder = trained("run")
    (folder / file).write_text(content)
    run = read(folder)
    assert run.status == status
    assert (run.at_best("validation_loss") == 4.0) == (file != "metrics.csv")


def test_a_folder_that_was_only_claimed(tmp_path):
    run = read(tmp_path)
    assert (run.status, dict(run.settings), run.seconds) == (
        "half made: no configuration", {}, None,
    )  # fmt: skip


def test_what_is_no_number_is_none():
    assert math.isnan(number("1;2"))
    assert math.isnan(number(None))
