import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.config import UserError
from gpt.data.batches import IGNORE, Batches, draw, evaluation_windows, permute
from gpt.data.token_file import Counts, TokenFile


def token_file(path, ids, vocab_size) -> TokenFile:
    np.array(ids, "<u2").tofile(path)
    return TokenFile(path, Counts(tokens=len(ids), documents=1, text_bytes=len(ids)), vocab_size)


def epoch_inputs(batches: Batches, epoch: int) -> torch.Tensor:
    """The inputs of an epoch, of batches of one sequence each."""
    steps = range(epoch * batches.windows, (epoch + 1) * batches.windows)
    return torch.cat([batches.batch(step)[0] for step in steps])


@pytest.mark.parametrize("size", range(1, 301))
def test_the_permutation_hits_every_place_once(size):
    _, keys = draw(seed=size, epoch=3)
    assert sorted(permute(np.arange(size), size, keys)) == list(range(size))


@settings(deadline=None, max_examples=50)
@given(size=st.integers(1, 50_000), seed=st.integers(0, 2**64), epoch=st.integers(0, 2**40))
def test_the_permutation_hits_every_place_once_for_any_size_and_key(size, seed, epoch):
    _, keys = draw(seed, epoch)
    permuted = permute(np.arange(size), size, keys)
    assert permuted.min() == 0
    assert permuted.max() == size - 1
    assert len(np.unique(permuted)) == size


def test_the_permutation_of_a_huge_range_stays_in_it():
    size = 10**15
    _, keys = draw(0, 0)
    permuted = permute(np.arange(size - 1000, size), size, keys)
    assert ((permuted >= 0) & (permuted < size)).all()
    assert len(np.unique(permuted)) == 1000


@pytest.mark.parametrize("size", [2, 5, 16, 100])
def test_every_place_is_as_likely_as_any_other(size):
    # In 4,000 epochs place 0 goes to each of `size` places about 4000/size times. Chi-squared has mean
    # size - 1 and variance 2 (size - 1): chance hardly ever takes it five standard deviations above its mean.
    counts = np.bincount(
        [int(permute(np.array([0]), size, draw(1, epoch)[1])[0]) for epoch in range(4000)], minlength=size
    )
    chi_squared = ((counts - 4000 / size) ** 2 / (4000 / size)).sum()
    assert chi_squared < size - 1 + 5 * (2 * (size - 1)) ** 0.5


def test_an_epoch_looks_shuffled():
    order = permute(np.arange(10_000), 10_000, draw(0, 0)[1])
    assert abs(np.corrcoef(np.arange(10_000), order)[0, 1]) < 0.05
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05


def test_an_example_to_check_by_hand():
    # 11 tokens, context 3: W = (11 - 3) // 3 = 2 windows, from an offset of 0 to 4 = 11 - 2·3 - 1.
    batches = Batches(np.arange(11), context=3, batch_size=2, seed=7)
    assert (batches.windows, batches.tokens_per_step) == (2, 6)
    assert batches.epochs(steps=10) == 10.0
    seen = set()
    for step in range(60):  # each step is an epoch
        inputs, targets = batches.batch(step)
        offset = int(inputs.min())
        assert sorted(inputs.tolist()) == [
            [offset, offset + 1, offset + 2],
            [offset + 3, offset + 4, offset + 5],
        ]
        assert targets.tolist() == (inputs + 1).tolist()
        seen.add((offset, int(inputs[0, 0]) == offset))
    assert seen == {(offset, first) for offset in range(5) for first in (True, False)}


@settings(deadline=None, max_examples=60)
@given(context=st.integers(1, 20), extra=st.integers(0, 300), epoch=st.integers(0, 5), seed=st.integers(0, 2**32))
def test_the_windows_of_an_epoch_are_disjoint_and_leave_less_than_two_contexts_out(context, extra, epoch, seed):
    length = 2 * context + extra
    batches = Batches(np.arange(length), context, batch_size=1, seed=seed)
    inputs = epoch_inputs(batches, epoch).flatten()
    assert len(inputs.unique()) == len(inputs)  # disjoint: the tokens are their own places
    assert length - len(inputs) < 2 * context
    assert inputs.max() - inputs.min() == len(inputs) - 1  # without a gap
    assert inputs.max() <= length - 2  # the last token is only ever a target


def test_epochs_differ_in_offset_and_order():
    batches = Batches(np.arange(10_000), context=10, batch_size=1, seed=0)
    first, second = epoch_inputs(batches, 0), epoch_inputs(batches, 1)
    assert first.min() != second.min()
    assert ((first - first.min()) != (second - second.min())).any()


def test_what_one_epoch_leaves_out_another_has():
    batches = Batches(np.arange(48), context=8, batch_size=1, seed=0)
    seen = torch.cat([epoch_inputs(batches, epoch).flatten() for epoch in range(40)])
    assert set(seen.tolist()) == set(range(47))  # the last token is only ever a target


def test_a_batch_crosses_the_end_of_an_epoch():
    batches = Batches(np.arange(23), context=4, batch_size=3, seed=0)  # W = 4: batch 1 is windows 3, then 0 and 1
    assert batches.windows == 4
    one_by_one = Batches(np.arange(23), context=4, batch_size=1, seed=0)
    expected = torch.cat([one_by_one.batch(sequence)[0] for sequence in range(12)])
    assert torch.equal(torch.cat([batches.batch(step)[0] for step in range(4)]), expected)


def test_a_batch_larger_than_an_epoch():
    batches = Batches(np.arange(23), context=4, batch_size=11, seed=0)
    inputs, _ = batches.batch(5)
    assert inputs.shape == (11, 4)


@settings(deadline=None, max_examples=40)
@given(
    accumulate=st.integers(1, 6),
    world_size=st.integers(1, 6),
    rows=st.integers(1, 4),
    step=st.integers(0, 10**6),
)
def test_the_global_batch_is_the_same_for_any_number_of_shares(accumulate, world_size, rows, step):
    batch_size = accumulate * world_size * rows
    batches = Batches(np.arange(1000), context=7, batch_size=batch_size, seed=3)
    shares = [
        batches.batch(step, micro_step, accumulate, rank, world_size)
        for micro_step in range(accumulate)
        for rank in range(world_size)
    ]
    assert all(inputs.shape == targets.shape == (rows, 7) for inputs, targets in shares)
    whole = batches.batch(step)
    for side in (0, 1):
        assert torch.equal(torch.cat([share[side] for share in shares]), whole[side])


def test_a_batch_depends_on_nothing_but_its_arguments():
    batches = Batches(np.arange(1000), context=7, batch_size=4, seed=3)
    expected = batches.batch(17)
    for step in (0, 500, 3):
        batches.batch(step)
    np.random.seed(0)
    torch.manual_seed(0)
    again = Batches(np.arange(1000), context=7, batch_size=4, seed=3)
    for found in (batches.batch(17), again.batch(17)):
        assert torch.equal(found[0], expected[0])
        assert torch.equal(found[1], expected[1])
    other = Batches(np.arange(1000), context=7, batch_size=4, seed=4)
    assert not torch.equal(other.batch(17)[0], expected[0])


def test_the_order_never_changes():
    # Written down once: a change here would make every earlier run resume on other data.
    batches = Batches(np.arange(1000), context=10, batch_size=8, seed=1337)
    assert batches.batch(0)[0][:, 0].tolist() == [688, 738, 18, 338, 818, 168, 618, 768]
    assert batches.batch(10**9)[0][:, 0].tolist() == [605, 475, 175, 715, 845, 965, 735, 435]


def test_batches_are_contiguous_int64(tmp_path):
    inputs, targets = Batches(token_file(tmp_path / "train.bin", range(100), 100), 7, 4, 0).batch(0)
    for side in (inputs, targets):
        assert side.dtype == torch.int64
        assert side.is_contiguous()


@pytest.mark.parametrize("accumulate, world_size", [(3, 1), (1, 5), (4, 4), (16, 1)])
def test_a_batch_that_cannot_be_shared_out_is_refused(accumulate, world_size):
    batches = Batches(np.arange(100), context=4, batch_size=8, seed=0)
    with pytest.raises(UserError, match=rf"^batch_size=8 .* a multiple of {accumulate * world_size}$"):
        batches.batch(0, accumulate=accumulate, world_size=world_size)


def test_a_split_shorter_than_two_contexts_is_refused_in_training(tmp_path):
    tokens = token_file(tmp_path / "train.bin", range(15), 100)
    expected = r"^model.context=8: the train split has 15 tokens, where 16 are needed .*lower model.context or"
    with pytest.raises(UserError, match=expected):
        Batches(tokens, context=8, batch_size=1, seed=0)
    tokens = token_file(tmp_path / "train.bin", range(16), 100)
    assert Batches(tokens, context=8, batch_size=1, seed=0).windows == 1


def test_a_split_that_fills_no_window_is_refused_in_evaluation(tmp_path):
    tokens = token_file(tmp_path / "validation.bin", range(8), 100)
    with pytest.raises(UserError, match=r"^model\.context=8: the validation split has 8 tokens, where 9"):
        evaluation_windows(tokens, context=8, batch_size=1)
    tokens = token_file(tmp_path / "validation.bin", range(9), 100)
    assert len(list(evaluation_windows(tokens, context=8, batch_size=1))) == 1


def test_an_empty_split_is_refused():
    with pytest.raises(UserError, match="the split has 0 tokens"):
        Batches(np.array([], np.uint16), context=1, batch_size=1, seed=0)


def test_ids_outside_the_vocabulary_are_named_with_their_file(tmp_path):
    ids = [*range(40), 50, *range(40)]
    tokens = token_file(tmp_path / "train.bin", ids, vocab_size=50)
    expected = r"train\.bin: token id 50 is outside the vocabulary of 50, so the file is damaged; delete"
    with pytest.raises(UserError, match=expected):
        Batches(tokens, context=10, batch_size=7, seed=0).batch(0)
    with pytest.raises(UserError, match=expected):
        list(evaluation_windows(tokens, context=10, batch_size=100))


def test_evaluation_windows_to_check_by_hand():
    batches = list(evaluation_windows(np.arange(10, 22), context=4, batch_size=2))
    assert [[side.tolist() for side in batch] for batch in batches] == [
        [[[10, 11, 12, 13], [14, 15, 16, 17]], [[11, 12, 13, 14], [15, 16, 17, 18]]],
        [[[18, 19, 20, 0]], [[19, 20, 21, IGNORE]]],
    ]


@settings(deadline=None)
@given(context=st.integers(1, 30), extra=st.integers(1, 200), batch_size=st.integers(1, 9))
def test_evaluation_has_every_token_but_the_first_as_a_target_once(context, extra, batch_size):
    tokens = np.arange(context + extra)
    batches = list(evaluation_windows(tokens, context, batch_size))
    targets = torch.cat([targets for _, targets in batches]).flatten()
    inputs = torch.cat([inputs for inputs, _ in batches]).flatten()
    real = targets != IGNORE
    assert targets[real].tolist() == tokens[1:].tolist()
    assert inputs[real].tolist() == tokens[:-1].tolist()
    assert (~real).sum() < context
    assert all(1 <= len(inputs) <= batch_size and inputs.dtype == torch.int64 for inputs, _ in batches)


LONG_TRAINING = """
import re, sys
from pathlib import Path
from gpt.data.batches import Batches
from gpt.data.token_file import Counts, TokenFile

tokens = TokenFile(Path(sys.argv[1]), Counts(tokens=100_000_000, documents=1, text_bytes=0), 257)
batches = Batches(tokens, context=128, batch_size=4, seed=0)
for step in range(20_000):
    batches.batch(step)
    if step in (999, 19_999):
        print(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_stays_flat_over_twenty_thousand_batches(tmp_path):
    with (tmp_path / "train.bin").open("wb") as file:
        file.truncate(200_000_000)  # a hole: takes no space
    command = [sys.executable, "-c", LONG_TRAINING, str(tmp_path / "train.bin")]
    early, late = map(int, subprocess.check_output(command).split())
    assert late - early < 2000  # kB: 100 bytes for each batch
