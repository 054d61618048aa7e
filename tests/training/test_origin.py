"""What a training begins from is found, verified and restored; what `auto` decided before stays."""

import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from gpt import checkpoint
from gpt.checkpoint import CHECKSUMS, OPTIMIZER, State
from gpt.config import UserError, parse
from gpt.data.tokenizer.char import CharConfig
from gpt.device import Precision
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.model.position.learned import LearnedConfig
from gpt.processes import Processes
from gpt.run_folder import RunFolder
from gpt.training.optimizer import optimizer_state
from gpt.training.origin import Origin, find_origin
from gpt.training.settings import TrainSettings

BYTES = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)
CPU = torch.device("cpu")

ALONE = Processes(torch.device("cpu"))


def settings(**more):
    choices = {"dataset": {"name": "builtin"}, "tokenizer": {"name": "byte"}}
    choices |= {"optimizer": {"name": "adamw"}, "schedule": {"name": "linear"}, "model": BYTES.model_dump()}
    return parse(TrainSettings, {**choices, **more})


def test_a_new_run_begins_with_nothing(tmp_path):
    origin = find_origin(settings(), tmp_path / "new")
    assert origin == Origin()
    assert origin.describe() == []
    assert origin.start(settings(steps=9).horizon(), ALONE).done == 0
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "notes").touch()
    with pytest.raises(UserError, match=r"is there already.*resume="):
        find_origin(settings(), tmp_path / "new")


def test_a_resumed_run_begins_with_its_last_checkpoint(make_run, root):
    folder = make_run(root / "run", steps=[(1, 1.0), (4, 2.0)]).folder
    origin = find_origin(settings(resume=str(folder), steps=9), None)
    assert (origin.state.step, origin.weights.name, origin.tokenizer) == (4, "step_00000004", None)
    horizon = origin.start(settings(steps=9).horizon(), ALONE)
    assert (horizon.done, horizon.elapsed >= 0.5) == (4, True)
    ((label, text),) = origin.describe()
    assert label == "resumed"
    assert text.endswith("run after step 4, trained on cpu in fp32 so far")
    model = GPT(BYTES)
    assert not torch.equal(model.embedding.weight, weights(origin)["embedding.weight"])
    assert origin.load(model, ALONE) is model
    assert all(torch.equal(tensor, weights(origin)[name]) for name, tensor in model.state_dict().items())


def weights(origin):
    return load_file(origin.weights / "model.safetensors")


def test_weights_that_do_not_fit_are_refused_by_name(make_run, root):
    folder = make_run(root / "run", steps=[(4, 2.0)]).folder
    with pytest.raises(UserError, match=r"init: .*names and shapes.* blocks\.1\.attention.* for one: not there"):
        find_origin(settings(init=str(folder), model={**BYTES.model_dump(), "n_layer": 2}), None)


@pytest.mark.parametrize(
    "more, end", [({"steps": 4}, "steps=4"), ({"steps": 3}, "steps=3"), ({"budget": "0.5s"}, "budget=0.5s")]
)
def test_a_run_at_its_end_is_not_resumed(make_run, root, more, end):
    folder = make_run(root / "run", steps=[(4, 2.0)]).folder
    with pytest.raises(UserError, match=f"resume: this run has done 4 updates and is at its end, {end}"):
        find_origin(settings(resume=str(folder), **more), None)


def test_a_run_without_a_checkpoint_begins_at_step_0_with_what_it_began_from(make_run, root):
    source = make_run(root / "source", steps=[(2, 1.0)]).folder
    begun = make_run(root / "begun", steps=[]).folder
    origin = find_origin(settings(resume=str(begun), init=str(source)), None)
    assert (origin.state, origin.weights.parents[1].name) == (None, "source")
    assert origin.tokenizer.vocab_size == 257
    assert origin.describe() == [("resumed", f"{begun} from the start: it has no checkpoint yet")]


@pytest.mark.parametrize("name", ["model.safetensors", OPTIMIZER, "state.json", "vocabulary.json"])
def test_damage_is_told_before_anything_is_begun(make_run, root, name):
    folder = make_run(root / "run", steps=[(4, 2.0)]).folder
    file = folder / "checkpoints" / "step_00000004" / name
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(UserError, match=f"resume: .*{name} is missing or was changed.*; remove this checkpoint"):
        find_origin(settings(resume=str(folder)), None)


def test_damage_is_told_before_a_new_run_is_begun_from_it(make_run, root):
    folder = make_run(root / "run", steps=[(4, 2.0)]).folder
    (folder / "checkpoints" / "step_00000004" / "extra").touch()
    with pytest.raises(UserError, match="init: .*extra is missing or was changed"):
        find_origin(settings(init=str(folder)), None)


def test_an_optimizers_file_that_cannot_be_read_is_told_before_anything_is_begun(make_run, root):
    """Its checksum may be right."""
    folder = make_run(root / "run", steps=[(4, 2.0)]).last.folder
    (folder / OPTIMIZER).write_bytes(b"no tensors")
    sums = json.loads((folder / CHECKSUMS).read_text())
    sums[OPTIMIZER] = hashlib.sha256(b"no tensors").hexdigest()
    (folder / CHECKSUMS).write_text(json.dumps(sums))
    with pytest.raises(UserError, match=rf"resume: .*{OPTIMIZER} cannot be read"):
        find_origin(settings(resume=str(root / "run")), None)


def test_a_tokenizer_that_does_not_fit_is_refused(make_run, root):
    folder = make_run(root / "run", config=BYTES.model_copy(update={"vocab_size": 100})).folder
    with pytest.raises(UserError, match="init: .*has 257 tokens, the weights have 100"):
        find_origin(settings(init=str(folder)), None)


def test_weights_whose_table_is_no_table_are_refused(make_run, root):
    last = make_run(root / "run").last
    save_file({"embedding.weight": torch.tensor(1.0)}, last.folder / "model.safetensors")
    sums = json.loads((last.folder / CHECKSUMS).read_text())
    sums["model.safetensors"] = hashlib.sha256((last.folder / "model.safetensors").read_bytes()).hexdigest()
    (last.folder / CHECKSUMS).write_text(json.dumps(sums))
    with pytest.raises(UserError, match=r"init: .*has 257 tokens, the weights have 0"):
        find_origin(settings(init=str(root / "run")), None)


def test_what_becomes_of_unknown_characters_is_as_it_is_set_now(root, bytes_data, state_of):
    bytes_data.tokenizer = CharConfig().build(lambda _: iter([["ab"]]))
    (root / "run").mkdir(parents=True)
    run = RunFolder(root / "run")
    config = BYTES.model_copy(update={"vocab_size": bytes_data.tokenizer.vocab_size})
    run.start({"model": config.model_dump()}, bytes_data, keep=1)
    run.save(GPT(config).state_dict(), {}, state_of(1))
    for unknown, ids in (("skip", [0, 1]), ("error", None)):
        chosen = {"name": "char", "unknown": unknown}
        origin = find_origin(settings(init=str(run.folder), tokenizer=chosen, model=config.model_dump()), None)
        if ids:
            assert origin.tokenizer.encode("a?b") == ids
        else:
            with pytest.raises(UserError, match="unknown=skip"):
                origin.tokenizer.encode("a?b")


@pytest.mark.parametrize("resumed, setting", [(True, "resume"), (False, "init")])
def test_weights_that_are_not_finite_are_told_with_the_setting_that_they_come_from(make_run, root, resumed, setting):
    last = make_run(root / "run", steps=[(4, 2.0)]).last
    model = GPT(BYTES)
    model.embedding.weight.data[5, 1] = torch.inf
    save_file(model.state_dict(), last.folder / "model.safetensors")
    told = f"^{setting}: the weights in .* are not all finite numbers up to 65,504; remove this"
    with pytest.raises(UserError, match=told):
        Origin(state=last.state if resumed else None, weights=last.folder).load(GPT(BYTES), ALONE)


def test_a_guard_goes_on_from_its_counts_and_its_scale(build_update, root, bytes_data, state_of):
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    update, counted = build_update(), {"skipped": 5, "skipped_in_a_row": 2, "spikes": 1, "losses": [2.5]}
    counted["scaler"] = scaler.state_dict()
    (root / "run").mkdir(parents=True)
    run = RunFolder(root / "run")
    run.start({"model": {}}, bytes_data, keep=1)
    last = run.save(
        update.model.state_dict(), optimizer_state(update.model, update.guard.optimizer), state_of(9, **counted)
    )
    resumed = build_update()
    resumed.guard.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    Origin(state=checkpoint.read(last.folder).state, weights=last.folder).restore(resumed)
    assert resumed.guard.state() == counted
    tokens = torch.arange(8)[None]
    resumed([(tokens, tokens)])
    assert resumed.guard.check() == (5, 1), "the update was made"
    assert resumed.guard.scaler.get_scale() == 512


def test_to_begin_from_another_run_its_optimizer_is_not_needed(make_run, root):
    folder = make_run(root / "run", steps=[(4, 2.0)]).folder
    (folder / "checkpoints" / "step_00000004" / OPTIMIZER).unlink()
    origin = find_origin(settings(init=str(folder)), None)
    assert (origin.run, origin.state, origin.weights.name) == (None, None, "step_00000004")
    ((_, text),) = origin.describe()
    assert text.startswith("with the weights of ")


@pytest.fixture
def stood(state_of):
    return lambda **more: Origin(state=State(**state_of(3, **more), data="f00d"))


def test_what_auto_decided_stays_while_the_device_is_of_the_same_kind(stood):
    fp32 = stood(precision="fp32").precision("auto", CPU)
    assert (fp32.name, fp32.reason) == ("fp32", "as it was when the run was left")
    assert stood(precision="bf16").precision("auto", CPU).name == "bf16"
    elsewhere = stood(device="cuda", precision="fp16").precision("auto", CPU)
    assert (elsewhere.name in ("fp32", "bf16"), "as it was" in elsewhere.reason) == (True, False)
    assert stood(precision="fp32").precision("bf16", CPU).name == "bf16", "what is set is set"


@pytest.mark.parametrize(
    "compiled, device, mode, becomes",
    [
        (True, "cpu", "auto", "on"), (False, "cpu", "auto", "off"), (False, "cpu", "on", "off"),
        (True, "cuda", "auto", "auto"), (False, "cpu", "strict", "strict"), (True, "cpu", "on", "on"),
    ],
)  # fmt: skip
def test_what_was_compiled_stays_compiled(stood, compiled, device, mode, becomes):
    assert stood(compiled=compiled, device=device).compile(mode, Precision("fp32", "as set", CPU)) == becomes


def test_other_data_are_refused(stood):
    stood().check_fingerprint("f00d")
    with pytest.raises(UserError, match=r"resume: the text, .*has changed since.*init="):
        stood().check_fingerprint("beef")
    Origin().check_fingerprint("beef")


LEARNED = BYTES.model_copy(update={"position": LearnedConfig()})


def test_a_longer_context_grows_the_table_of_learned_positions(make_run, root):
    folder = make_run(root / "run", steps=[(4, 2.0)], config=LEARNED).folder
    longer = {**LEARNED.model_dump(), "context": 24}
    origin = find_origin(settings(init=str(folder), model=longer), None)
    assert origin.changed == ["position.table.weight has 24 rows in place of 16: the last 8 are new"]
    assert origin.describe()[0][1].endswith("; position.table.weight has 24 rows in place of 16: the last 8 are new")
    with pytest.raises(UserError, match=r"init: freeze: position\.table\.weight begins with 8 new rows"):
        find_origin(settings(init=str(folder), model=longer, freeze=["position.*"]), None)
    model = origin.load(GPT(GPTConfig(**longer)), ALONE)
    assert torch.equal(model.position.table.weight[:16], weights(origin)["position.table.weight"])


def test_a_run_that_goes_on_has_the_rows_that_it_has(make_run, root):
    folder = make_run(root / "run", steps=[(4, 2.0)], config=LEARNED).folder
    with pytest.raises(UserError, match="resume: .*position.table.weight has 24 rows in place of 16.*by the run's set"):
        find_origin(settings(resume=str(folder), model={**LEARNED.model_dump(), "context": 24}), None)
