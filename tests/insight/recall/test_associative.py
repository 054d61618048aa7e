"""The recall task: what is asked was told, where it is said to be."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.data.batches import IGNORE
from gpt.insight.recall.associative import Recall

TASK = Recall(places=6, values=3, pairs=(2, 6))
BATCH = TASK.batch(seed=7, step=3, rows=50)


def meaning(task: Recall) -> dict[int, tuple[str, int, int]]:
    """What each token says: its kind, key, value."""
    said = {0: ("blank", -1, -1)}
    for key in range(task.places):
        said[1 + key] = ("key", key, -1)
        for value in range(task.values):
            said[1 + task.places + task.values + key * task.values + value] = ("pair", key, value)
    for value in range(task.values):
        said[1 + task.places + value] = ("value", -1, value)
    return said


def test_each_token_means_one_thing():
    said = meaning(TASK)
    assert sorted(said) == list(range(TASK.vocab_size))
    assert TASK.vocab_size == 1 + 6 + 3 + 18


@settings(deadline=None)
@given(st.integers(0, (1 << 63) - 1), st.integers(0, 1 << 20), st.integers(2, 9), st.integers(2, 5), st.data())
def test_every_answer_is_the_value_of_its_key_at_its_distance(seed, step, places, values, data):
    pairs = data.draw(st.lists(st.integers(1, places), min_size=1, max_size=3))
    task, rows = Recall(places, values, pairs), 5
    said, batch = meaning(task), Recall(places, values, pairs).batch(seed, step, rows)
    assert batch.tokens.shape == batch.targets.shape == batch.distance.shape == (rows, 2 * places)
    for row in range(rows):
        tokens = [said[token] for token in batch.tokens[row].tolist()]
        told = [token for token in tokens[:places] if token[0] == "pair"]
        assert len(told) == int(batch.pairs[row]) == pairs[row % len(pairs)]
        assert len({key for _, key, _ in told}) == len(told)
        assert {kind for kind, _, _ in tokens[:places]} <= {"pair", "blank"}
        assert (batch.targets[row, :places] == IGNORE).all()
        assert (batch.distance[row, :places] == 0).all()
        for at in range(places, 2 * places):
            kind, key, _ = tokens[at]
            answer = said[int(batch.targets[row, at])]
            source = tokens[at - int(batch.distance[row, at])]
            assert (kind, answer[0]) == ("key", "value")
            assert source == ("pair", key, answer[2])


def test_a_batch_is_a_pure_function_of_seed_and_step():
    torch.manual_seed(1)
    again = TASK.batch(seed=7, step=3, rows=50)
    assert all(torch.equal(a, b) for a, b in zip(BATCH, again, strict=True))
    others = [TASK.batch(seed=7, step=4, rows=50), TASK.batch(seed=8, step=3, rows=50)]
    assert not any(torch.equal(BATCH.tokens, other.tokens) for other in others)


def test_neither_where_a_pair_stands_nor_its_value_tells_anything():
    """Over 2,000 texts each place, key and value is as frequent as any other, within 5 standard errors."""
    task = Recall(places=4, values=2, pairs=(1,))
    batch = task.batch(seed=1, step=1, rows=2000)
    place = (batch.tokens[:, :4] > 0).int().argmax(dim=1)
    key = batch.tokens[:, 4] - 1
    value = batch.targets[:, 4] - 5
    for drawn, kinds in ((place, 4), (key, 4), (value, 2)):
        share = 1 / kinds
        error = (share * (1 - share) / 2000) ** 0.5
        counts = torch.bincount(drawn, minlength=kinds) / 2000
        assert counts.tolist() == pytest.approx([share] * kinds, abs=5 * error)
