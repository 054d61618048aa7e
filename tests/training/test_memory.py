"""In how many parts an update fits; devices of any size are played by an update that refuses too many rows."""

import subprocess
import sys
import textwrap

import pytest
import torch

from gpt.config import RunError, UserError
from gpt.data.batches import Batches
from gpt.training.memory import choices, fitting, memory_told


@pytest.fixture
def batches(tokens):
    return Batches(tokens, 8, 12, seed=0)


@pytest.fixture
def small_device(build_update):
    """An update on a device with room for so many rows at once."""

    def build(rows):
        update = build_update()

        def try_memory(micro_batch):
            if len(micro_batch[0]) > rows:
                raise torch.OutOfMemoryError("CUDA out of memory")

        update.try_memory = try_memory
        return update

    return build


@pytest.mark.parametrize("rows, accumulate", [(99, 1), (12, 1), (11, 2), (5, 3), (4, 3), (3, 4), (2, 6), (1, 12)])
def test_auto_takes_as_few_parts_as_fit(small_device, batches, rows, accumulate):
    assert fitting(small_device(rows), batches, "auto") == accumulate


def test_a_number_that_fits_is_kept_and_another_is_refused_with_one_that_does(small_device, batches):
    assert fitting(small_device(4), batches, 6) == 6
    with pytest.raises(RunError) as told:
        fitting(small_device(4), batches, 2)
    assert str(told.value) == "training: out of memory on cpu with 6 x 8 tokens at once; accumulate=3 fits"
    with pytest.raises(RunError, match="with 12 x 8 tokens at once; one at a time neither"):
        fitting(small_device(0), batches, "auto")


def test_what_is_tried_leaves_no_trace(build_update, batches):
    update = build_update(dropout=0.5)
    state = torch.get_rng_state()
    weights = {name: tensor.clone() for name, tensor in update.model.state_dict().items()}
    assert fitting(update, batches, "auto") == 1
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in update.model.parameters())
    assert all(torch.equal(tensor, weights[name]) for name, tensor in update.model.state_dict().items())
    assert not update.guard.optimizer.state


def test_other_errors_are_no_lack_of_memory(build_update, batches):
    update = build_update()
    update.try_memory = lambda _: (_ for _ in ()).throw(RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        fitting(update, batches, "auto")


def test_sequences_that_cannot_be_shared_out_are_refused(build_update, batches):
    update = build_update()
    update.spread.processes.size = 5
    with pytest.raises(
        UserError,
        match="batch_size: 12 sequences cannot be shared out evenly over 5 processes; start 1, 2, 3, 4, 6, 12, or",
    ):
        choices(update, batches)
    update.spread.processes.size = 3
    assert choices(update, batches) == [1, 2, 4]


def test_in_the_middle_of_a_training_the_way_on_is_told(build_update, batches, tmp_path):
    with (
        pytest.raises(RunError, match=r"with 4 x 8 tokens at once; go on with resume=\S+/run accumulate=4$"),
        memory_told(build_update(), batches, 3, tmp_path / "run"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(KeyError), memory_told(build_update(), batches, 3, tmp_path):
        raise KeyError("x")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a limit on memory is not kept")
def test_pytorchs_words_for_a_full_host_are_known():
    script = f"""
        import resource, torch
        from gpt.training.memory import is_out_of_memory
        torch.ones(1)
        resource.setrlimit(resource.RLIMIT_AS, ({1 << 33}, {1 << 33}))
        try:
            torch.empty(1 << 36)
        except Exception as error:
            print(is_out_of_memory(error), error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True"), done.stdout + done.stderr


def test_parts_that_the_sequences_of_a_process_do_not_make_are_refused(build_update, batches):
    update = build_update()
    update.spread.processes.size = 3  # 4 sequences each
    with pytest.raises(
        UserError, match="^accumulate: 4 sequences of a process cannot be cut into 6 parts; take 1, 2, 4, or"
    ):
        fitting(update, batches, 6)


@pytest.mark.parametrize("found, accumulate", [(4, 4), (2, 3), (5, 3), (None, 3)])
def test_what_auto_found_before_stays_where_it_fits(small_device, batches, found, accumulate):
    assert fitting(small_device(5), batches, "auto", found) == accumulate  # 5 of 12 sequences fit
