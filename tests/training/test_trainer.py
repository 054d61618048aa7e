import csv
import math
import signal
import time

import pytest
import torch
from safetensors.torch import load_file

from gpt import checkpoint
from gpt.config import RunError
from gpt.signals import Interrupted
from gpt.training.evaluation import Evaluation
from gpt.training.trainer import Rhythm, is_due, seed_dropout


def rows(trainer):
    with (trainer.run.folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_what_happens_when(build_trainer):
    trainer, recorder = build_trainer(steps=23)
    evaluation = trainer.fit()
    written = rows(trainer)
    assert [int(r["step"]) for r in written if r["loss"]] == [10, 20, 23]
    assert [int(r["step"]) for r in written if r["validation_loss"]] == [5, 10, 15, 20, 23]
    assert [m["step"] for m, _ in recorder.seen] == [int(r["step"]) for r in written]
    assert recorder.seen[-1][1] == 1.0
    assert float(written[-1]["validation_loss"]) == evaluation.loss
    assert [int(r["tokens"]) for r in written if r["loss"]] == [640, 1280, 1472]


def test_the_learning_rate_follows_the_schedule(build_trainer):
    trainer, _ = build_trainer(steps=20, lr=0.5)
    trainer.fit()
    assert [float(r["lr"]) for r in rows(trainer) if r["lr"]] == [pytest.approx(0.25), 0.0]
    trainer.set_learning_rate(1 / 20)
    assert all(g["lr"] == pytest.approx(0.475) for g in trainer.update.guard.optimizer.param_groups)


def test_the_last_checkpoint_holds_the_last_weights_and_the_best_the_best(build_trainer):
    trainer, _ = build_trainer(steps=23)
    losses = iter([3.0, 2.0, 2.5, 2.1, 2.2])
    trainer.evaluate = lambda: Evaluation(next(losses), 1.0, 99)
    trainer.fit()
    found = checkpoint.find(trainer.run.folder / "checkpoints")
    assert [(c.state.step, c.state.validation_loss) for c in found] == [(10, 2.0), (23, 2.2)]
    weights = load_file(found[-1].folder / checkpoint.WEIGHTS)
    assert torch.equal(weights["embedding.weight"], trainer.update.model.embedding.weight)


def test_without_a_validation_split(build_trainer):
    trainer, _ = build_trainer(steps=9, evaluate=False)
    assert trainer.fit() is None
    found = checkpoint.find(trainer.run.folder / "checkpoints")
    assert [(c.state.step, c.state.validation_loss) for c in found] == [(9, None)]


def test_evaluating_and_saving_more_often_changes_no_weight(build_trainer):
    often, _ = build_trainer(name="often", rhythm=Rhythm(1, 1, 1), dropout=0.2)
    torch.manual_seed(5)
    often.fit()
    seldom, _ = build_trainer(name="seldom", rhythm=Rhythm(1, 100, 100), dropout=0.2)
    torch.manual_seed(5)
    seldom.fit()
    for one, other in zip(often.update.model.parameters(), seldom.update.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("accumulate", [2, 4, 8])
def test_accumulation_changes_nothing_but_memory(build_trainer, accumulate):
    whole, _ = build_trainer(name="whole")
    split, _ = build_trainer(name="split", rhythm=Rhythm(accumulate, 5, 7))
    assert whole.fit().loss == pytest.approx(split.fit().loss, rel=1e-4)


def test_a_batch_that_breaks_is_skipped_and_counted(build_trainer):
    trainer, _ = build_trainer()
    gradients = trainer.update.gradients

    def break_some(micro_batches, forward):
        loss = gradients(micro_batches, forward)
        broken.append(len(broken) in (3, 4))
        return loss * math.nan if broken[-1] else loss

    broken = []
    trainer.update.gradients = break_some
    trainer.fit()
    assert len(broken) == 20, "a skipped update counts as one"
    assert [int(r["skipped"]) for r in rows(trainer) if r["skipped"]] == [2, 2]
    assert all(p.isfinite().all() for p in trainer.update.model.parameters())


class Clock:
    """Goes on only by what is said to take time."""

    now = 0.0

    def taking(self, seconds, function):
        def timed(*args):
            self.now += seconds
            return function(*args)

        return timed


def test_the_speed_is_that_of_updates_alone(build_trainer, monkeypatch):
    """By a clock on which an update takes 1 s, an evaluation 100 s and saving 1000 s."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    trainer, _ = build_trainer(steps=20)
    trainer.update = Timed(trainer.update, clock.taking(1, trainer.update))
    trainer.evaluate, trainer.run.save = clock.taking(100, trainer.evaluate), clock.taking(1000, trainer.run.save)
    trainer.is_best = lambda _: False
    trainer.fit()
    assert clock.now == 20 * 1 + 4 * 100 + 3 * 1000
    assert [float(r["tokens_per_second"]) for r in rows(trainer) if r["loss"]] == [64.0, 64.0]  # 8 rows of 8 tokens


def test_the_share_of_the_peak_is_that_of_the_models_operations(build_trainer):
    trainer, _ = build_trainer(steps=10)
    trainer.fit()
    (row,) = (row for row in rows(trainer) if row["loss"])
    flops = float(row["tokens_per_second"]) * trainer.update.model.flops_per_token()
    assert float(row["mfu"]) == pytest.approx(flops / 1e9)


def test_a_checkpoint_tells_what_was_training_and_what_was_not(build_trainer, monkeypatch):
    """An update takes 1 s, an evaluation 100 s."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    trainer, _ = build_trainer(steps=10)
    trainer.update = Timed(trainer.update, clock.taking(1, trainer.update))
    trainer.evaluate = clock.taking(100, trainer.evaluate)
    trainer.fit()
    state = trainer.run.last.state
    assert (state.elapsed, state.asides) == (210.0, {"probing": 0.0, "evaluating": 200.0})
    assert state.training == 10.0


class Timed:
    """An update that takes its time."""

    def __init__(self, update, call):
        self.spread = update.spread
        self.model = update.model
        self.precision = update.precision
        self.guard = update.guard
        self.state = update.state
        self.call = call

    def __call__(self, micro_batches):
        return self.call(micro_batches)


def test_every_update_sees_its_own_batch_at_its_own_rate(build_trainer):
    trainer, _ = build_trainer(steps=4, lr=0.5)
    gradients, guard, seen = trainer.update.gradients, trainer.update.guard, []

    def watched(micro_batches, forward):
        seen.append((micro_batches[0][0], guard.optimizer.param_groups[0]["lr"]))
        return gradients(micro_batches, forward)

    trainer.update.gradients = watched
    trainer.fit()
    assert [lr for _, lr in seen] == pytest.approx([0.375, 0.25, 0.125, 0.0])  # 0.5 · (1 - (step + 1) / 4)
    for step, (inputs, _) in enumerate(seen):
        assert torch.equal(inputs, trainer.batches.batch(step)[0])


def test_the_best_is_only_replaced_by_a_better_one(build_trainer):
    trainer, _ = build_trainer(steps=35, rhythm=Rhythm(1, 5, 100))
    losses = iter([math.nan, 3.0, 2.0, 2.5, 2.0, math.nan, 2.75])
    trainer.evaluate, best = lambda: Evaluation(next(losses), 1.0, 99), []
    save = trainer.run.save
    trainer.run.save = lambda *args: best.append(save(*args).state.step)
    trainer.fit()
    assert best == [10, 15, 35]
    assert trainer.run.best.state.step == 15


def test_a_best_that_is_saved_anyway_is_remembered_too(build_trainer):
    trainer, _ = build_trainer(steps=15, rhythm=Rhythm(1, 5, 10))
    losses = iter([3.0, 2.0, 2.5])
    trainer.evaluate = lambda: Evaluation(next(losses), 1.0, 99)
    trainer.fit()
    assert trainer.run.best.state.validation_loss == 2.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_saves_and_ends_and_a_resumed_run_goes_on_as_if_nothing_had_been(build_trainer, number):
    whole, _ = build_trainer(name="whole", steps=20, dropout=0.2)
    whole.fit()
    stopped, _ = build_trainer(name="stopped", steps=20, dropout=0.2)
    strikes = [number]

    def struck(progress):
        if progress == 12 / 20 and strikes:
            signal.raise_signal(strikes.pop())
        return 1 - progress

    stopped.schedule = struck
    with pytest.raises(
        Interrupted, match=r"interrupted after step 12 and saved; to go on: python train.py resume=.*stopped"
    ) as told:
        stopped.fit()
    assert told.value.number == number
    assert [int(r["step"]) for r in rows(stopped) if r["loss"]] == [10, 12]
    del stopped, told  # lets go of the folder
    torch.manual_seed(99)
    resumed, _ = build_trainer(name="stopped", steps=20, dropout=0.2, seed=5)
    assert resumed.fit().loss == whole.evaluate().loss
    for one, other in zip(whole.update.model.parameters(), resumed.update.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert [int(r["step"]) for r in rows(resumed) if r["loss"]] == [10, 12, 20]
    assert [int(r["step"]) for r in rows(resumed) if r["validation_loss"]] == [5, 10, 15, 20]


def test_a_signal_in_an_evaluation_saves_after_it(build_trainer):
    trainer, _ = build_trainer(steps=20)
    evaluate = trainer.evaluate
    trainer.evaluate = lambda: signal.raise_signal(signal.SIGTERM) or evaluate()
    with pytest.raises(Interrupted, match="after step 5 and saved"):
        trainer.fit()
    assert trainer.run.last.state.step == 5


def test_a_signal_in_the_last_update_ends_the_program_after_it_is_saved(build_trainer):
    trainer, _ = build_trainer(steps=1)
    update = trainer.update.gradients
    trainer.update.gradients = lambda *args: signal.raise_signal(signal.SIGTERM) or update(*args)
    with pytest.raises(Interrupted, match="interrupted after the last step, and saved in .*run"):
        trainer.fit()
    assert trainer.run.last.state.validation_loss is not None


def test_what_an_update_draws_depends_on_seed_and_step_only():
    drawn = []
    for seed, step in [(1, 5), (2, 5), (1, 6), (1, 5)]:
        torch.rand(7)
        seed_dropout(seed, step)
        drawn.append(torch.rand(3).tolist())
    assert drawn[0] == drawn[3]
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


def test_memory_is_logged(build_trainer):
    trainer, _ = build_trainer(steps=10)
    trainer.fit()
    (row,) = [r for r in rows(trainer) if r["loss"]]
    assert 1e7 < float(row["memory"]) < 1e12


def test_rows_tell_norm_and_loss_apart(build_trainer):
    trainer, _ = build_trainer(steps=1, clip=0.1)
    loss, norm = build_trainer(name="same", steps=1, clip=0.1)[0].update(trainer.batches.micro_batches(0, 1))
    trainer.fit()
    assert [(float(r["loss"]), float(r["grad_norm"])) for r in rows(trainer) if r["loss"]] == [
        (pytest.approx(loss.item()), pytest.approx(norm.item()))
    ]


def test_a_training_that_ends_in_nan_is_told(build_trainer):
    trainer, _ = build_trainer(steps=3)
    trainer.evaluate = lambda: Evaluation(math.nan, math.nan, 99)
    with pytest.raises(RunError, match="last validation loss is nan"):
        trainer.fit()
    assert [c.state.validation_loss for c in checkpoint.find(trainer.run.folder / "checkpoints")] == [None]


def test_a_training_that_ends_in_infinity_is_told(build_trainer):
    trainer, _ = build_trainer(steps=3)
    trainer.evaluate = lambda: Evaluation(math.inf, math.inf, 99)
    with pytest.raises(RunError, match="last validation loss is inf"):
        trainer.fit()


def test_skipped_updates_are_counted_on_after_resuming(build_trainer):
    trainer, _ = build_trainer(steps=6, rhythm=Rhythm(1, 100, 3))
    gradients, broken = trainer.update.gradients, iter([True, False, True])
    trainer.update.gradients = lambda *args: gradients(*args) * (math.nan if next(broken) else 1.0)
    with pytest.raises(StopIteration):  # killed in the fourth update
        trainer.fit()
    del trainer
    resumed, _ = build_trainer(steps=6, rhythm=Rhythm(1, 100, 3))
    assert resumed.update.guard.state() == {
        "skipped": 2,
        "skipped_in_a_row": 1,
        "spikes": 0,
        "losses": [pytest.approx(2.4, abs=0.3)],
        "scaler": {},
    }
    assert resumed.horizon.elapsed >= resumed.run.last.state.elapsed > 0
    resumed.fit()
    assert [int(r["skipped"]) for r in rows(resumed) if r["skipped"]] == [2]


@pytest.mark.parametrize("every, due", [(1, [0, 1, 2, 3, 4]), (2, [1, 3]), (5, [4]), (6, [])])
def test_due(every, due):
    assert [step for step in range(5) if is_due(step, every)] == due


def test_checkpoints_by_time(build_trainer, monkeypatch):
    """By a clock on which an update takes 1 s."""
    now = 0.0

    def update_takes_a_second(*args):
        nonlocal now
        now += 1
        return made(*args)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    trainer, _ = build_trainer(steps=20, rhythm=Rhythm(1, 100, None, save_seconds=6.0), evaluate=False)
    made, saved = trainer.update, []
    trainer.update = Timed(made, update_takes_a_second)
    trainer.run.save = lambda weights, optimizer, state: saved.append(state["step"])
    trainer.fit()
    assert saved == [6, 12, 18, 20]


def test_what_cannot_be_saved_on_the_way_is_warned_of_and_at_the_end_an_error(build_trainer, recwarn):
    trainer, _ = build_trainer(steps=20)  # saves after 7 and 14, and where an evaluation is best: 5, 10, 15, 20
    trainer.is_best = lambda _: False
    save, failing = trainer.run.save, {7}

    def sometimes(weights, optimizer, state):
        if state["step"] in failing:
            raise RunError("the disk is full")
        return save(weights, optimizer, state)

    trainer.run.save = sometimes
    trainer.fit()
    assert [str(w.message) for w in recwarn] == ["step 7 is not saved, and the training goes on: the disk is full"]
    assert trainer.run.last.state.step == 20
    again, _ = build_trainer(steps=20, name="again")
    failing.add(20)
    again.run.save = sometimes
    with pytest.raises(RunError, match="^the disk is full$"):
        again.fit()


def test_a_spike_is_told_with_its_step(build_trainer, recwarn):
    trainer, recorder = build_trainer(steps=60, lr=1e-5, evaluate=False)
    gradients, step = trainer.update.gradients, iter(range(60))
    trainer.update.gradients = lambda *args: gradients(*args) + (5.0 if next(step) == 44 else 0.0)
    trainer.fit()
    assert [str(w.message) for w in recwarn] == ["step 50: a loss lay far above the last ones, 1 so far"]
    assert [metrics["spikes"] for metrics, _ in recorder.seen] == [0, 0, 0, 0, 1, 1]
    del trainer
    resumed, recorder = build_trainer(steps=70, lr=1e-5, evaluate=False)
    resumed.fit()
    assert [metrics["spikes"] for metrics, _ in recorder.seen] == [1]
    assert len(recwarn) == 1, "it was told of"


def test_a_device_that_is_full_in_the_middle_is_told_with_the_way_on(build_trainer):
    trainer, _ = build_trainer(steps=5)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    trainer.update.gradients = full
    with pytest.raises(
        RunError, match=r"out of memory on cpu with 8 x 8 tokens at once; go on with resume=\S+ accumulate=2$"
    ):
        trainer.fit()


def test_dropout_differs_between_processes():
    drawn = []
    for rank in (0, 0, 1, 2):
        seed_dropout(3, 4, rank)
        drawn.append(torch.rand(4).tolist())
    assert drawn[0] == drawn[1]
    assert len({tuple(numbers) for numbers in drawn}) == 3
