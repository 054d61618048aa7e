import itertools
import math

import numpy as np
import pytest
import torch

from gpt.config import UserError
from gpt.data.batches import IGNORE
from gpt.device import Precision
from gpt.processes import Processes
from gpt.training.evaluation import Evaluation, Evaluator, shared_out

LENGTHS = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 0])  # id 10 is end-of-text
SPLIT = np.array([1, 5, 3, 10, 2, 8, 8, 9, 0, 10, 4, 7, 6, 2, 1, 3, 10, 5, 5, 9, 0])


def evaluator(update, rows=2, split=SPLIT):
    return Evaluator(update.model, split, rows, LENGTHS, update.precision, update.separator)


def test_the_whole_split_equals_a_sum_by_hand(build_update):
    update = build_update()
    nats = bits = size = 0.0
    with torch.no_grad():
        update.model.eval()
        for start in (0, 8, 16):  # windows of 8, the last of 4
            window = torch.from_numpy(SPLIT[start : start + 9])
            logits = update.model(window[None, :-1])[0].double().log_softmax(-1)
            for row, target in zip(logits, window[1:].tolist(), strict=True):
                nats -= row[target].item()
                if target != 10:
                    bits -= row[target].item() / math.log(2)
                    size += LENGTHS[target]
    result = evaluator(update)()
    assert result.tokens == 20
    assert result.loss == pytest.approx(nats / 20, rel=1e-6)
    assert result.bits_per_byte == pytest.approx(bits / size, rel=1e-6)
    assert result.perplexity == pytest.approx(math.exp(nats / 20), rel=1e-6)


@pytest.mark.parametrize("separator", [10, 0])
def test_documents_that_see_only_themselves_equal_a_sum_by_hand(build_update, separator):
    """Each document of a window by itself; padding, which is 0, may look like many more documents."""
    update = build_update(separator=separator)
    nats = 0.0
    with torch.no_grad():
        update.model.eval()
        for start in (0, 8, 16):
            window = SPLIT[start : start + 9]
            begins = [0, *(i for i, token in enumerate(window[:-1]) if token == separator and i > 0), len(window) - 1]
            for first, last in itertools.pairwise(begins):
                document = torch.from_numpy(window[first : last + 1])[None]
                nats += update.model(document[:, :-1], document[:, 1:]).double().sum().item()
    result = evaluator(update)()
    assert (result.loss, result.tokens) == (pytest.approx(nats / 20, rel=1e-6), 20)
    stream = evaluator(build_update())().loss
    assert (result.loss == pytest.approx(stream, rel=1e-6)) == (separator == 0), "which begins a window, and no other"


def test_it_leaves_the_model_in_the_mode_that_it_was_in(build_update):
    update = build_update()
    for training in (True, False):
        update.model.train(training)
        evaluator(update)()
        assert update.model.training is training


def test_it_computes_in_the_precision(build_update):
    update = build_update()
    dtypes = []
    update.model.blocks[0].feedforward.output.register_forward_hook(lambda _, __, out: dtypes.append(out.dtype))
    Evaluator(update.model, SPLIT, 2, LENGTHS, Precision("bf16", "as set", torch.device("cpu")))()
    assert set(dtypes) == {torch.bfloat16}


def test_a_split_of_nothing_but_end_of_text_has_no_bits_per_byte(build_update):
    result = evaluator(build_update(), split=np.full(21, 10))()
    assert result.loss > 0
    assert math.isnan(result.bits_per_byte)


def test_losses_are_summed_in_fp64(build_update):
    update = build_update()
    update.model.forward = lambda inputs, targets, where: torch.where(targets == 0, 2.0**24, 1.0)
    split = np.array([1, 2, 3, 4, 0, 5, 6, 7, 8])
    assert evaluator(update, split=split)().loss == (2**24 + 7) / 8  # fp32 has no 2^24 + 7


def test_a_perplexity_beyond_all_floats_is_a_large_one():
    assert Evaluation(loss=1000.0, bits_per_byte=1.0, tokens=1).perplexity == math.exp(700)


def test_two_evaluations_are_identical_and_the_batch_does_not_matter(build_update):
    update = build_update(dropout=0.5)
    update.model.train()
    first, second = evaluator(update)(), evaluator(update)()
    assert first == second
    assert update.model.training, "dropout is on again"
    assert evaluator(update, rows=1)().loss == pytest.approx(first.loss, rel=1e-6)


def test_evaluating_draws_no_random_numbers(build_update):
    update = build_update(dropout=0.5)
    state = torch.get_rng_state()
    evaluator(update)()
    assert torch.equal(torch.get_rng_state(), state)


def test_a_split_that_is_too_short_is_refused_before_training(build_update):
    with pytest.raises(UserError, match=r"model\.context=8: the split has 8 tokens"):
        evaluator(build_update(), split=SPLIT[:8])


@pytest.mark.parametrize(
    "size, shares", [(1, [[0, 1, 2, 3, 4]]), (2, [[0, 2, 4], [1, 3, None]]), (3, [[0, 3], [1, 4], [2, None]])]
)
def test_windows_are_shared_out_as_many_to_each(size, shares):
    """A model that is itself shared out computes only where all processes do."""
    windows = [(torch.full((1, 4), number), torch.full((1, 4), number)) for number in range(5)]
    for rank, share in enumerate(shares):
        processes = Processes(torch.device("cpu"))
        processes.rank, processes.size = rank, size
        given = [targets for _, targets in shared_out(iter(windows), processes)]
        assert [t.unique().tolist() for t in given] == [[IGNORE if number is None else number] for number in share]
