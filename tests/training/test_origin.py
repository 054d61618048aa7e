"""What a training begins from is found, verified and restored; what `auto` decided before stays."""

import pytest
import torch
from safetensors.torch import load_file

from gpt.checkpoint import OPTIMIZER, State
from gpt.config import UserError, parse
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.origin import Origin, find_origin
from gpt.training.settings import TrainSettings

BYTES = GPTConfig(vocab_size=257, context=16, n_layer=1, n_head=2, d_model=8)
CPU = torch.device("cpu")


def settings(**more):
    choices = {"dataset": {"name": "builtin"}, "tokenizer": {"name": "byte"}}
    choices |= {"optimizer": {"name": "adamw"}, "schedule": {"name": "linear"}, "model": BYTES.model_dump()}
    return parse(TrainSettings, {**choices, **more})


def test_a_new_run_begins_with_nothing(tmp_path):
    origin = find_origin(settings(), tmp_path / "new")
    assert origin == Origin()
    assert origin.describe() == []
    assert origin.start(settings(steps=9).horizon()).done == 0
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "notes").touch()
    with pytest.raises(UserError, match=r"is there already.*resume="):
        find_origin(settings(), tmp_path / "new")


def test_a_resumed_run_begins_with_its_last_checkpoint(make_run, root):
    folder = make_run(root / "run", steps=[(1, 1.0), (4, 2.0)]).folder
    origin = find_origin(settings(resume=str(folder), steps=9), None)
    assert (origin.state.step, origin.weights.name, origin.tokenizer) == (4, "step_00000004", None)
    horizon = origin.start(settings(steps=9).horizon())
    assert (horizon.done, horizon.elapsed >= 0.5) == (4, True)
    ((label, text),) = origin.describe()
    assert label == "resumed"
    assert text.endswith("run after step 4, trained on cpu in fp32 so far")
    model = GPT(BYTES)
    assert not torch.equal(model.embedding.weight, weights(origin)["embedding.weight"])
    assert origin.load(model) is model
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
    assert stood(compiled=compiled, device=device).compile(mode, CPU) == becomes


def test_other_data_are_refused(stood):
    stood().recognise("f00d")
    with pytest.raises(UserError, match=r"resume: the text, .*has changed since.*init="):
        stood().recognise("beef")
    Origin().recognise("beef")
