"""What of the settings comes from a run's folder, and what may be typed beside it."""

import os
import shutil
from pathlib import Path

import pytest

from gpt.config import UserError, parse
from gpt.files import hold
from gpt.model.config import GPTConfig
from gpt.training.continuation import completed, newest_unfinished, overlaid
from gpt.training.settings import TrainSettings

BYTES = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)
CHOICES = {
    "dataset": {"name": "builtin"},
    "tokenizer": {"name": "byte"},
    "optimizer": {"name": "adamw"},
    "schedule": {"name": "linear"},
}


def composed(**more):
    """Plain settings, as a command line without arguments would give them."""
    return parse(TrainSettings, {**CHOICES, **more}).model_dump()


@pytest.fixture
def store(make_run, bytes_data, root):
    """A run in the folder `name` with such settings, and a checkpoint after each of the steps."""

    def build(name="run", steps=(1,), **settings):
        opened = make_run(root / name, steps=[])
        chosen = parse(TrainSettings, composed(steps=10, **settings))
        opened.start(chosen.for_model(chosen.model.for_vocabulary(257)), bytes_data, keep=1)
        save(opened, steps)
        return opened.folder

    def save(opened, steps):
        for step in steps:
            (opened.folder / "checkpoints").mkdir(exist_ok=True)
            template = make_run(root.parent / f"template_{opened.folder.name}_{step}", steps=[(step, None)])
            shutil.move(template.last.folder, opened.folder / "checkpoints")

    return build


def test_a_resumed_run_has_its_own_settings(store):
    folder = store(seed=7, batch_size=12, optimizer={"name": "muon"})
    merged = completed(TrainSettings, composed(resume=str(folder)), {"resume"}, None)
    assert parse(TrainSettings, merged).optimizer.name == "muon"
    assert (merged["seed"], merged["batch_size"], merged["steps"]) == (7, 12, 10)
    assert merged["resume"] == str(folder)
    assert merged["model"]["vocab_size"] == 257


@pytest.mark.parametrize(
    "typed",
    [
        {"steps": 20}, {"budget": "5min"}, {"eval_every": 3}, {"save_every": 4}, {"keep": 5}, {"accumulate": 3},
        {"device": "cpu"}, {"logger": {"console": {"name": "console"}}}, {"debug": True}, {"batch_size": 12},
    ],
    ids=str,
)  # fmt: skip
def test_what_may_differ_is_taken_and_what_is_the_same_may_be_typed(store, typed):
    folder = store(batch_size=12, seed=7)
    (key,) = typed
    merged = completed(TrainSettings, {**composed(resume=str(folder)), **typed}, {"resume", key}, None)
    assert parse(TrainSettings, merged).model_dump()[key] == typed[key]
    assert merged["seed"] == 7


@pytest.mark.parametrize(
    "typed, path, tells",
    [
        ({"seed": 8}, "seed", "seed is 7 in .*, and 8 here"),
        ({"batch_size": 8}, "batch_size", "batch_size is 12 in .*, and 8 here"),
        ({"clip": 0.5}, "clip", "clip is 1.0"),
        ({"packing": "documents"}, "packing", "packing is 'stream' in .*, and 'documents' here"),
        ({"model": {"position": {"name": "rope", "factor": 2}}}, "model.position.factor", r"factor is 1\.0"),
        ({"model": {"n_layer": 9}}, "model.n_layer", r"model\.n_layer is 4 in .*, and 9 here"),
        ({"optimizer": {"name": "adamw", "lr": 0.5}}, "optimizer.lr", r"optimizer\.lr is 0.002"),
        ({"schedule": {"name": "cosine"}}, "schedule", r"schedule\.name is 'linear' in .*, and 'cosine' here"),
        ({"optimizer": {"name": "muon"}}, "optimizer", r"optimizer\.name is 'adamw' in .*, and 'muon' here"),
        ({"precision": "bf16"}, "precision", "precision is 'auto' in .*, and 'bf16' here"),
        ({"compile": "off"}, "compile", "compile is 'auto' in .*, and 'off' here"),
        ({"eval_tokens": 99}, "eval_tokens", "eval_tokens is null in .*, and 99 here"),
        ({"dataset": {"name": "builtin", "years": [1800, 1810]}}, "dataset.years", r"dataset\.years"),
        ({"tokenizer": {"name": "char"}}, "tokenizer", r"tokenizer"),
        ({"name": "other"}, "name", "name is 'gpt'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_makes_another_run_is_refused(store, typed, path, tells):
    folder = store(batch_size=12, seed=7)
    with pytest.raises(UserError, match=f"resume: .*{tells}.*resumed run keeps all but steps, budget, .*init=") as told:
        completed(TrainSettings, {**composed(resume=str(folder)), **typed}, {"resume", path}, None)
    assert "\n" not in str(told.value)


def test_all_that_is_typed_is_compared(store):
    folder = store(batch_size=12, seed=7)
    same = composed(resume=str(folder), batch_size=12, seed=7, steps=99)
    assert completed(TrainSettings, same, {"batch_size", "seed", "steps", "resume"}, None)["steps"] == 99
    with pytest.raises(UserError, match="batch_size is 12"):
        completed(TrainSettings, composed(resume=str(folder), seed=7), {"batch_size", "seed", "resume"}, None)


def test_a_run_from_before_a_setting_was_there_goes_on_with_its_default(store):
    folder = store(packing="stream")
    text = (folder / "config.yaml").read_text()
    older = text.replace("packing: stream\n", "").replace("    factor: 1.0\n", "")
    assert len(text) - len(older) == 32, "both lines were there"
    (folder / "config.yaml").write_text(older)
    merged = completed(TrainSettings, composed(resume=str(folder)), {"resume"}, None)
    assert (merged["packing"], merged["model"]["position"]["factor"]) == ("stream", 1.0)
    auto = completed(TrainSettings, composed(resume="auto", steps=10), {"resume"}, None)
    assert auto["resume"] == str(folder), "and is found again"


def test_steps_take_the_place_of_a_budget(store):
    folder = store(budget="5min")
    assert completed(TrainSettings, composed(resume=str(folder)), {"resume"}, None)["budget"] == "5min"
    typed = {**composed(resume=str(folder)), "steps": 30}
    merged = completed(TrainSettings, typed, {"resume", "steps"}, None)
    assert (merged["steps"], merged["budget"]) == (30, None)
    typed = {**composed(resume=str(folder)), "steps": 30, "budget": "9min"}
    assert completed(TrainSettings, typed, {"resume", "steps", "budget"}, None)["budget"] == "9min", "given as well"


def test_the_traceback_is_shown_where_this_command_asks_for_it(store):
    folder = store(debug=True)
    assert completed(TrainSettings, composed(resume=str(folder)), {"resume"}, None)["debug"] is False


@pytest.mark.parametrize("setting", ["resume", "init"])
def test_a_run_is_named_wherever_one_stands(source, store, root, monkeypatch, setting):
    store()
    monkeypatch.chdir(root)
    name = "run" if setting == "resume" else "source"
    assert completed(TrainSettings, composed(**{setting: name}), {setting}, None)[setting] == str(root / name)


@pytest.mark.parametrize("setting", ["resume", "init"])
def test_an_empty_name_is_told(setting):
    with pytest.raises(UserError, match=f"{setting}: expected the folder of a run, got nothing; name one"):
        completed(TrainSettings, composed(**{setting: ""}), {setting}, None)


@pytest.mark.parametrize("other", ["init", "hydra.run.dir"])
def test_a_resumed_run_has_its_folder_and_its_weights(store, other):
    folder = store()
    with pytest.raises(UserError, match=f"{other}: resume=.* leave it out"):
        completed(TrainSettings, composed(resume=str(folder), init="x"), {"resume", other}, None)


def test_auto_takes_the_newest_unfinished_run_of_the_same_settings(store, root):
    def auto(run_dir=None, **more):
        data = composed(resume="auto", steps=10, **more)
        found = completed(TrainSettings, data, {"resume", *more}, run_dir)["resume"]
        return found and Path(found).name

    assert auto() is None
    for number, (name, steps, settings) in enumerate([
        ("older", (3,), {}), ("newer", (4,), {}), ("finished", (10,), {}), ("other", (4,), {"seed": 3}),
        ("not_begun", (), {"seed": 4}),
    ]):  # fmt: skip
        os.utime(store(name, steps, **settings) / "config.yaml", (1000 + number, 1000 + number))
    (root / "broken").mkdir()
    (root / "broken" / "config.yaml").write_text("a: [")
    assert auto() == "newer"
    assert auto(seed=3) == "other"
    assert auto(seed=4) == "not_begun", "from step 0"
    assert auto(seed=5) is None
    assert auto(eval_every=7) == "newer", "what may differ does not tell runs apart"
    assert auto(root / "older") == "older", "where a folder is named, only that run is meant"
    assert auto(root / "nowhere") is None
    descriptor = hold(root / "newer")
    assert auto() == "older", "the newer one is being trained"
    os.close(descriptor)


def test_a_damaged_run_of_the_same_settings_is_not_passed_over_in_silence(store):
    folder = store()
    (folder / "checkpoints" / "step_00000001" / "state.json").write_text("{")
    with pytest.warns(UserWarning, match=r"resume=auto passes over .*run: .*state\.json: this is no JSON"):
        assert newest_unfinished(parse(TrainSettings, composed(steps=10)), [folder]) is None


def test_the_newest_run_of_other_settings_is_told_of_where_it_is_unfinished(store, recwarn):
    wanted = parse(TrainSettings, composed(steps=10))
    mine, other, over = store("mine"), store("other", seed=3), store("over", (10,), seed=3)
    assert newest_unfinished(wanted, [mine, other]) == mine
    assert newest_unfinished(wanted, [over, mine]) == mine
    assert not recwarn
    with pytest.warns(UserWarning, match=r"the newest run, .*other, is unfinished, .*; resume=.*other goes on with it"):
        assert newest_unfinished(wanted, [other, mine]) == mine


def test_auto_and_latest_do_not_go_together(source):
    with pytest.raises(UserError, match="init: with resume=auto, latest would soon be the run that is begun; name"):
        completed(TrainSettings, composed(resume="auto", init="latest"), {"resume", "init"}, None)


def test_a_run_that_has_done_more_than_is_wanted_is_no_unfinished_one(store):
    folder = store(steps=(7,))  # of 10
    assert newest_unfinished(parse(TrainSettings, composed(steps=8)), [folder]) == folder
    assert newest_unfinished(parse(TrainSettings, composed(steps=7)), [folder]) is None


def test_a_finished_run_is_no_unfinished_one(store):
    folder = store(steps=(10,))
    assert newest_unfinished(parse(TrainSettings, composed(steps=10)), [folder]) is None
    assert newest_unfinished(parse(TrainSettings, composed(steps=10)), [folder.parent]) is None
    assert newest_unfinished(parse(TrainSettings, composed(steps=20)), [folder]) is None, "at its own end, not this one"
    both = store("both", steps=(3, 10))
    assert newest_unfinished(parse(TrainSettings, composed(steps=10)), [both]) is None, "the last checkpoint counts"


@pytest.fixture
def source(make_run, root):
    """A run to begin from: sizes unlike the defaults, bytes."""
    opened = make_run(root / "source", steps=[])
    opened.settings["tokenizer"] = {"name": "byte"}
    opened.settings["model"]["dropout"] = 0.25
    template = opened.settings
    shutil.rmtree(opened.folder)
    again = make_run(root / "source", steps=[(3, 2.0)], settings=template)
    return again.folder


def test_another_runs_model_and_tokenizer_are_begun_with(source):
    data = composed(init=str(source), tokenizer={"name": "char"}, seed=3)
    merged = completed(TrainSettings, data, {"init", "seed"}, None)
    settings = parse(TrainSettings, merged)
    assert (settings.model.d_model, settings.model.context, settings.model.vocab_size) == (8, 16, 257)
    assert (settings.tokenizer.name, settings.seed, settings.init) == ("byte", 3, str(source))
    data["model"]["dropout"] = 0.5
    assert completed(TrainSettings, data, {"init", "model.dropout"}, None)["model"]["dropout"] == 0.5
    assert merged["model"]["dropout"] == 0.25


def test_another_runs_weights_may_read_more_and_be_packed_otherwise(source):
    data = composed(init=str(source), packing="documents")
    data["model"] |= {"context": 64, "position": {"name": "rope", "base": 10000.0, "factor": 4}}
    typed = {"init", "packing", "model.context", "model.position.factor"}
    chosen = parse(TrainSettings, completed(TrainSettings, data, typed, None))
    assert (chosen.packing, chosen.model.context, chosen.model.position.factor) == ("documents", 64, 4.0)
    assert chosen.model.d_model == 8


def test_auto_takes_a_run_that_began_with_the_same_weights(source, store, root, make_run):
    def auto(**more):
        return completed(TrainSettings, composed(resume="auto", steps=10, **more), {"resume", *more}, None)

    model = {**composed()["model"], **BYTES.model_dump(), "dropout": 0.25}
    store("from_nothing", model=model)
    assert auto(init=str(source))["resume"] is None
    assert auto(init=str(source))["model"]["d_model"] == 8, "a new run, with the weights of the source"
    begun = store("from_source", model=model, init=str(source))
    assert auto(init=str(source))["resume"] == str(begun)


def test_what_becomes_of_unknown_characters_may_differ(make_run, root):
    settings = {"model": BYTES.model_dump(), "tokenizer": {"name": "char", "unknown": "error"}}
    folder = make_run(root / "chars", settings=settings).folder
    data = composed(init=str(folder), tokenizer={"name": "char", "unknown": "skip"})
    merged = completed(TrainSettings, data, {"init", "tokenizer.unknown"}, None)
    assert merged["tokenizer"] == {"name": "char", "unknown": "skip"}


def test_latest_is_a_run_to_begin_with(source):
    assert completed(TrainSettings, composed(init="latest"), {"init"}, None)["init"] == str(source)


def test_another_tokenizer_is_refused(source):
    data = composed(init=str(source), tokenizer={"name": "char"})
    with pytest.raises(UserError, match=r"init: tokenizer\.name is 'byte' in .* leave it out"):
        completed(TrainSettings, data, {"init", "tokenizer"}, None)


@pytest.mark.parametrize("setting", ["resume", "init"])
@pytest.mark.parametrize("make", ["nothing", "empty"])
def test_what_is_no_run_is_refused(tmp_path, setting, make):
    folder = tmp_path / "run"
    if make == "empty":
        folder.mkdir()
    with pytest.raises(UserError, match=f"^{setting}: .*run (is|holds) "):
        completed(TrainSettings, composed(**{setting: str(folder)}), {setting}, None)


def test_a_stored_setting_that_is_none_is_told_with_its_file(store):
    folder = store()
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text().replace("batch_size: 8", "batch_size: x"))
    with pytest.raises(UserError, match=r"resume: .*config\.yaml: batch_size: expected a valid integer, got 'x'"):
        completed(TrainSettings, composed(resume=str(folder)), {"resume"}, None)


def test_paths_into_choices_that_are_others_change_nothing():
    stored = {"optimizer": {"name": "muon", "momentum": 0.9}, "budget": None}
    data = {"optimizer": {"name": "adamw", "beta1": 0.5}, "budget": "5min"}
    assert overlaid(stored, data, ["optimizer.beta2.x", "budget"]) == {**stored, "budget": "5min"}
