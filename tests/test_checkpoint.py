"""Checkpoints are whole or not there, and data whoever wrote them."""

import json
import math
import pickle
import shutil
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file, save_file

from gpt import checkpoint
from gpt.config import UserError
from gpt.data.tokenizer.byte import ByteConfig
from gpt.files import AT_WORK
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.weights import load_model, load_optimizer

CPU = torch.device("cpu")
CONFIG = GPTConfig(vocab_size=257, context=8, n_layer=1, n_head=2, d_model=8)


MEMORY = {"state.embedding.weight.exp_avg": torch.arange(6.0).view(2, 3)}


@pytest.fixture
def state(state_of):
    return lambda step, loss=None: checkpoint.State(**state_of(step, loss), data="f00d")


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(CONFIG)


@pytest.fixture
def write(tmp_path, model):
    settings, tokenizer = {"model": CONFIG.model_dump()}, ByteConfig().build(lambda: iter(()))
    weights = model.state_dict()
    return lambda state, tokenizer=tokenizer: checkpoint.write(tmp_path, weights, MEMORY, settings, tokenizer, state)


@pytest.fixture
def written(write, state):
    return write(state(3, 2.5)).folder


def reseal(folder):
    """Make the checksums right again, as someone who means harm would."""
    sums = {p.name: checkpoint._sha256(p) for p in folder.iterdir() if p.name != checkpoint.CHECKSUMS}
    (folder / checkpoint.CHECKSUMS).write_text(json.dumps(sums))


def opened(folder):
    checkpoint.find(folder.parent)
    checkpoint.verify(folder)
    load_optimizer(folder)
    return load_model(folder, CPU)


def test_what_was_written_comes_back(written, model):
    loaded, settings = opened(written)
    assert settings == {"model": CONFIG.model_dump()}
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), loaded.parameters(), strict=True))
    tokens = torch.randint(257, (1, 8))
    assert torch.equal(loaded(tokens), model.eval()(tokens))
    assert not loaded.training
    assert [p.requires_grad for p in loaded.parameters()] == [True] * len(list(model.parameters()))


def test_tied_weights_are_stored_once_and_still_tied(written):
    assert "head.weight" not in load_file(written / checkpoint.WEIGHTS)
    loaded, _ = opened(written)
    assert loaded.head is None


def test_whoever_may_read_its_settings_may_read_its_weights(written):
    modes = {path.name: path.stat().st_mode for path in written.iterdir()}
    assert len(set(modes.values())) == 1, modes


def test_nothing_but_the_checkpoint_is_left(written):
    assert [p.name for p in written.parent.iterdir()] == ["step_00000003"]
    data = {"config.json", "model.safetensors", "optimizer.safetensors", "state.json", "vocabulary.json"}
    names = {"checksums.json", *data}
    assert {p.name for p in written.iterdir()} == names


@pytest.mark.parametrize("keep, left", [(1, [2, 5]), (2, [2, 4, 5]), (4, [2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])])
def test_the_best_and_so_many_of_the_last_are_kept(tmp_path, write, state, keep, left):
    for step, loss in [(1, 3.0), (2, 2.0), (3, None), (4, 2.5), (5, None)]:
        write(state(step, loss))
    found = checkpoint.find(tmp_path)
    assert [c.state.step for c in found] == [1, 2, 3, 4, 5]
    assert checkpoint.best(found).state.step == 2
    assert [c.state.step for c in checkpoint.prune(found, keep)] == left
    assert [c.state.step for c in checkpoint.find(tmp_path)] == left
    assert checkpoint.best([c for c in found if c.state.step in (3, 5)]) is None


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_no_state(state, loss):
    with pytest.raises(ValueError, match="validation_loss"):
        state(1, loss)


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module."])
def test_prefixes_of_compile_and_ddp_are_no_part_of_a_name(written, model, prefix):
    weights = load_file(written / checkpoint.WEIGHTS)
    save_file({prefix + k: v for k, v in weights.items()}, written / checkpoint.WEIGHTS)
    reseal(written)
    loaded, _ = opened(written)
    assert torch.equal(loaded.embedding.weight, model.embedding.weight)


def change_json(name, **changes):
    def change(folder):
        content = json.loads((folder / name).read_text())
        for key, value in changes.items():
            target, *path = content, *key.split("__")
            for part in path[:-1]:
                target = target[part]
            target[path[-1]] = value
        (folder / name).write_text(json.dumps(content))

    return change


def truncate(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-10])


def make_pickle(folder):
    class Harm:
        def __reduce__(self):
            return (open, (str(folder / "harm"), "w"))

    (folder / checkpoint.WEIGHTS).write_bytes(pickle.dumps(Harm()))


def not_finite(folder):
    weights = load_file(folder / checkpoint.WEIGHTS)
    weights["embedding.weight"][5, 1] = math.inf
    save_file(weights, folder / checkpoint.WEIGHTS)


def too_large(folder):
    weights = load_file(folder / checkpoint.WEIGHTS)
    weights["embedding.weight"][5, 1] = -65504.5
    save_file(weights, folder / checkpoint.WEIGHTS)


def eighths(folder):
    weights = load_file(folder / checkpoint.WEIGHTS)
    weights["embedding.weight"] = weights["embedding.weight"].to(torch.float8_e4m3fn)
    save_file(weights, folder / checkpoint.WEIGHTS)


def whole_numbers(folder):
    weights = {name: tensor.int() for name, tensor in load_file(folder / checkpoint.WEIGHTS).items()}
    save_file(weights, folder / checkpoint.WEIGHTS)


def wrong_shape(folder):
    weights = load_file(folder / checkpoint.WEIGHTS)
    weights["embedding.weight"] = torch.zeros(257, 9)
    save_file(weights, folder / checkpoint.WEIGHTS)


@pytest.mark.parametrize("resealed", [False, True])
@pytest.mark.parametrize(
    "damage, tells",
    [
        (truncate(checkpoint.WEIGHTS), "model.safetensors"),
        (truncate(checkpoint.CONFIG), "config.json"),
        (truncate(checkpoint.STATE), "state.json"),
        (lambda folder: (folder / checkpoint.WEIGHTS).unlink(), "model.safetensors"),
        (make_pickle, "model.safetensors"),
        (wrong_shape, "names and shapes"),
        (change_json(checkpoint.STATE, format=4), "format 4, this version reads 3; update gpt"),
        (change_json(checkpoint.STATE, format=1), "format 1, this version reads 3; train it anew"),
        (change_json(checkpoint.STATE, format="x"), "format 'x', this version reads 3; update gpt"),
        (truncate(checkpoint.OPTIMIZER), "optimizer.safetensors"),
        (lambda folder: (folder / checkpoint.OPTIMIZER).unlink(), "optimizer.safetensors"),
        (change_json(checkpoint.STATE, step="3; import os"), "state.json: (step|validation_loss): expected a valid"),
        (change_json(checkpoint.STATE, validation_loss="low"), "state.json: (step|validation_loss): expected a valid"),
        (lambda folder: (folder / checkpoint.CONFIG).write_text("[]"), "config.json: a JSON object is expected"),
        (change_json(checkpoint.CONFIG, model__vocab_size=None), "config.json describes no model"),
        (
            change_json(checkpoint.CONFIG, model__n_layer=10**9),
            "config.json: model.n_layer: expected less than or equal to 1000",
        ),
        (change_json(checkpoint.CONFIG, model__n_layer=1000), "does not hold the 1000 layers"),
        (change_json(checkpoint.CONFIG, model__d_model=16), "names and shapes"),
        (change_json(checkpoint.CONFIG, model__d_model=10**30), "config.json: model.d_model: expected less than"),
        (lambda folder: (folder / checkpoint.CONFIG).write_text("[" * 50_000), "config.json: this is no JSON"),
        (lambda folder: (folder / checkpoint.FILE).unlink(), "vocabulary.json is missing or was changed"),
        (not_finite, "not all finite numbers"),
        (too_large, "not all finite numbers up to 65,504"),
        (eighths, "embedding.weight is of type F8_E4M3, no tensor of a run"),
        (change_json(checkpoint.STATE, step=1 << 63), "state.json: step: expected less than 9223372036854775808"),
        (change_json(checkpoint.STATE, device="cpu\x1b[2J"), "state.json: device: expected 'cpu', 'cuda' or 'mps'"),
        (change_json(checkpoint.STATE, scaler={"scale": 1.0}), "state.json: scaler: expected nothing, or _growth"),
        (change_json(checkpoint.STATE, step=4), "holds step 4; name it step_00000004, or remove it"),
        (change_json(checkpoint.CONFIG, model__head_dim=1 << 24), r"model\.head_dim: 2 heads of width 16777216"),
        (whole_numbers, "is of type I32, no tensor of a run"),
        (change_json(checkpoint.CONFIG, model__attention={"name": "os"}), r"model\.attention: .*'os'"),
        (change_json(checkpoint.CONFIG, model__attention={"name": "../run"}), r"model\.attention"),
        (change_json(checkpoint.CONFIG, model___target_="os.system"), "_target_"),
        (change_json(checkpoint.CONFIG, model=[]), "config.json describes no model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damage_and_harm_are_refused(written, damage, tells, resealed):
    damage(written)
    if resealed:
        reseal(written)
    with pytest.raises(UserError, match=tells if resealed else f"({tells})|changed since it was saved"):
        opened(written)
    assert not (written / "harm").exists()


def test_a_checksum_file_that_names_a_way_out_does_not_lead_there(written):
    sums = json.loads((written / checkpoint.CHECKSUMS).read_text())
    (written / checkpoint.CHECKSUMS).write_text(json.dumps({**sums, "../../outside": "0"}))
    with pytest.raises(UserError, match="missing or was changed"):
        checkpoint.verify(written)


def test_a_way_out_is_not_followed_even_where_its_checksum_is_right(written):
    outside = written.parent / "outside"
    outside.write_text("a secret")
    sums = json.loads((written / checkpoint.CHECKSUMS).read_text())
    (written / checkpoint.CHECKSUMS).write_text(json.dumps({**sums, "../outside": checkpoint._sha256(outside)}))
    with pytest.raises(UserError, match="missing or was changed"):
        checkpoint.verify(written)


def test_a_link_that_leads_out_is_no_file_of_the_checkpoint(written):
    outside = written.parent / "outside"
    (written / checkpoint.WEIGHTS).rename(outside)
    (written / checkpoint.WEIGHTS).symlink_to(outside)
    with pytest.raises(UserError, match=r"model\.safetensors is missing or was changed"):
        checkpoint.verify(written)


@pytest.mark.parametrize("name", [checkpoint.STATE, checkpoint.CONFIG, checkpoint.CHECKSUMS])
def test_a_link_that_leads_out_is_not_read(written, name):
    outside = written.parent / "outside"
    (written / name).rename(outside)
    (written / name).symlink_to("../outside")
    with pytest.raises(UserError, match=f"run: .*{name}: a JSON file is expected there"):
        checkpoint.read_file(written, name)


def test_checkpoints_elsewhere_are_none(written, tmp_path_factory):
    (link := tmp_path_factory.mktemp("run") / "checkpoints").symlink_to(written.parent)
    with pytest.raises(UserError, match="checkpoints: this is a link out of the run's folder"):
        checkpoint.find(link)


def test_a_file_that_cannot_be_read_is_told(written, monkeypatch):
    def fail(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(checkpoint, "_sha256", fail)
    with pytest.raises(UserError, match=r"run: \S*config\.json: cannot be read: Permission denied; remove this"):
        checkpoint.verify(written)


@pytest.mark.parametrize("name", [checkpoint.WEIGHTS, checkpoint.CONFIG, checkpoint.STATE])
def test_what_has_no_checksum_is_refused(written, name):
    sums = json.loads((written / checkpoint.CHECKSUMS).read_text())
    del sums[name]
    (written / checkpoint.CHECKSUMS).write_text(json.dumps(sums))
    with pytest.raises(UserError, match=name):
        checkpoint.verify(written)


def test_every_file_has_a_checksum_the_tokenizers_too(written):
    sums = json.loads((written / checkpoint.CHECKSUMS).read_text())
    assert {*sums, checkpoint.CHECKSUMS} == {p.name for p in written.iterdir()}
    (written / "vocabulary.json").write_text("{}")
    with pytest.raises(UserError, match=r"vocabulary\.json"):
        checkpoint.verify(written)


def test_all_is_synced_before_it_has_its_name_and_the_name_after(tmp_path, write, state, monkeypatch):
    synced = []
    monkeypatch.setattr(
        checkpoint, "sync", lambda path: synced.append((path.name, (tmp_path / "step_00000003").exists()))
    )
    folder = write(state(3)).folder
    *before, (last, named) = synced
    *files, (aside, _) = before
    assert {name for name, _ in files} == {p.name for p in folder.iterdir()}
    assert aside == "step_00000003", "in a folder of another name"
    assert not any(named for _, named in before)
    assert (last, named) == (tmp_path.name, True)


def test_the_folder_of_the_first_checkpoint_is_synced_too(tmp_path, model, state, monkeypatch):
    synced = []
    monkeypatch.setattr(checkpoint, "sync", synced.append)
    tokenizer = ByteConfig().build(lambda: iter(()))
    for step in (1, 2):
        checkpoint.write(tmp_path / "checkpoints", model.state_dict(), {}, {}, tokenizer, state(step))
    assert synced[0] == tmp_path, "which has it by name"
    assert synced.count(tmp_path) == 1


def test_a_write_that_fails_leaves_no_checkpoint(tmp_path, write, state):
    class Broken:
        def save(self, folder):
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write(state(3), Broken())
    assert checkpoint.find(tmp_path) == []


def test_the_optimizers_memory_comes_back_and_sampling_does_without(written):
    assert {k: v.tolist() for k, v in load_optimizer(written).items()} == {
        "state.embedding.weight.exp_avg": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    }
    (written / checkpoint.OPTIMIZER).unlink()
    checkpoint.verify(written, without=checkpoint.OPTIMIZER)
    with pytest.raises(UserError, match=r"optimizer\.safetensors is missing or was changed"):
        checkpoint.verify(written)


def test_what_a_file_manager_leaves_is_no_matter(written):
    (written / ".DS_Store").write_bytes(b"icons")
    checkpoint.verify(written)


def test_text_that_is_no_utf8_is_saved(write, state, tmp_path):
    settings = {"path": "caf\udce9.txt"}  # a file's name in Latin-1, as Python reads it
    checkpoint._write_json(tmp_path / "x.json", settings)
    assert json.loads((tmp_path / "x.json").read_text()) == settings


def test_the_oldest_is_the_one_of_fewest_updates(tmp_path, write, state):
    """Also after 99,999,999 of them, where the names no longer sort as the numbers do."""
    for step in (10**8, 99_999_999):
        write(state(step))
    assert [c.folder.name for c in checkpoint.find(tmp_path)] == ["step_99999999", "step_100000000"]


def test_a_file_in_the_place_of_the_checkpoints_is_told(tmp_path):
    (tmp_path / "checkpoints").touch()
    with pytest.raises(UserError, match="checkpoints is no folder; name another run"):
        checkpoint.find(tmp_path / "checkpoints")
    assert checkpoint.find(tmp_path / "none") == []


def test_a_tensor_in_another_order_of_memory_is_saved_as_it_reads(tmp_path, model, state):
    memory = {"state.x": torch.arange(6.0).view(2, 3).T}
    tokenizer = ByteConfig().build(lambda: iter(()))
    folder = checkpoint.write(tmp_path, model.state_dict(), memory, {}, tokenizer, state(1)).folder
    assert load_optimizer(folder)["state.x"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_a_file_that_was_added_is_noticed(written):
    (written / "extra").touch()
    with pytest.raises(UserError, match="extra is missing or was changed"):
        checkpoint.verify(written)


def test_a_folder_that_was_not_finished_is_no_checkpoint_and_goes_with_the_next(written, write, state):
    for name in (".saving-dead", ".removing-dead"):
        shutil.copytree(written, written.parent / name / "step_00000004")
        (written.parent / name / AT_WORK).touch()  # which no process has locked
    assert [c.state.step for c in checkpoint.find(written.parent)] == [3]
    write(state(4))
    checkpoint.prune(checkpoint.find(written.parent), keep=1)
    write(state(5))
    checkpoint.prune(checkpoint.find(written.parent), keep=1)
    assert sorted(p.name for p in written.parent.iterdir()) == ["step_00000003", "step_00000005"]


def test_a_checkpoint_loses_its_name_before_its_first_file(write, state, monkeypatch):
    found = [write(state(step)) for step in (1, 2, 3)]

    @contextmanager
    def killed(parent, prefix):
        """A workshop whose process is killed before it removes anything."""
        (parent / f"{prefix}dead").mkdir()
        yield parent / f"{prefix}dead"
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "workshop", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.prune(found, keep=1)
    parent = found[0].folder.parent
    assert [c.state.step for c in checkpoint.find(parent)] == [2, 3]
    assert (parent / ".removing-dead" / "step_00000001" / "state.json").is_file()


def test_a_link_is_no_checkpoint(written, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(written, elsewhere / "step_00000009")
    (written.parent / "step_00000009").symlink_to(elsewhere / "step_00000009")
    assert [c.state.step for c in checkpoint.find(written.parent)] == [3]


def test_a_loss_scaler_goes_on_from_its_state(state_of):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(torch.zeros(1))
    kept = checkpoint.State(**{**state_of(3), "scaler": scaler.state_dict()}, data="f00d").model_dump_json()
    back = checkpoint.State.model_validate_json(kept).scaler
    assert back == scaler.state_dict()
    assert [type(value) for value in back.values()] == [type(value) for value in scaler.state_dict().values()]
