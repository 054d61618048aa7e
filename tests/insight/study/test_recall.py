"""Study `recall`: what each attention finds where theory is sure, and the tables made of known answers."""

import pytest
import torch

from gpt.config import UserError, variant_names
from gpt.insight.recall.associative import Recall
from gpt.insight.recall.page import Questions, Results, by_distance, findings
from gpt.insight.study.recall import RecallConfig

NAMES = [name for name in variant_names("gpt.model.attention") if name != "reference"]
TINY = {"pairs": [1, 4], "places": 4, "values": 2, "window": 4, "stride": 2, "d_model": 16, "batch_size": 4}
LEARNED = {
    "pairs": [4], "places": 4, "values": 2, "window": 3, "stride": 2, "d_model": 32, "steps": 300, "batch_size": 32,
    "lr": 0.01, "evaluated": 300,
}  # fmt: skip


@pytest.fixture
def results() -> Results:
    """Two texts of two questions; window 3 of distances 1 to 7. `all` is always right, `near` within the window."""
    questions = Questions(
        distance=torch.tensor([[1, 6], [2, 7]]),
        pairs=torch.tensor([[1, 1], [4, 4]]),
        column=torch.tensor([[True, True], [False, False]]),
    )
    right = {"all": torch.ones(2, 2, dtype=torch.bool), "near": questions.distance < 3}
    return Results(Recall(places=4, values=2, pairs=(1, 4)), questions, right, window=3)


def test_every_variant_is_trained_and_asked(context, told):
    found = RecallConfig(**TINY, steps=3, evaluated=20).build().run(context)
    for table in found.tables.values():
        assert list(table.columns[2:]) == NAMES
        assert all(0 <= rate <= 1 for row in table.rows for rate in row[2:])
    assert sum(row[1] for row in found.tables["distance"].rows) == 20 * 4
    assert [row[:2] for row in found.tables["pairs"].rows] == [["1", 40], ["4", 40]]
    assert (told.done, told.total) == (3 * len(NAMES), 3 * len(NAMES))


def test_the_same_seed_gives_the_same_findings(context):
    config = RecallConfig(**TINY, steps=3, evaluated=20)
    assert config.build().run(context).tables == config.build().run(context).tables


def test_full_attention_finds_all_and_a_window_what_is_in_it(context):
    rows = {row[0]: row[1:] for row in RecallConfig(**LEARNED).build().run(context).tables["reach"].rows}
    rates = {group: dict(zip(NAMES, row[1:], strict=True)) for group, row in rows.items()}
    assert rates["anywhere"]["sdpa"] > 0.99
    assert rates["in the window"]["sliding_window"] > 0.99
    assert rates["beyond, in a column"]["sparse"] > 0.99
    elsewhere, questions = rates["beyond, elsewhere"], rows["beyond, elsewhere"][0]
    error = (0.25 / questions) ** 0.5
    assert elsewhere["sdpa"] > 0.99
    assert elsewhere["sliding_window"] < 0.5 + 8 * error
    assert elsewhere["sparse"] < 0.5 + 8 * error


def test_questions_know_where_their_pairs_stand():
    config = RecallConfig(**TINY)
    study = config.build()
    asked = study.task.batch(seed=1, step=0, rows=4)
    questions = study.questions(asked)
    for row in range(4):
        for index in range(4):
            at = 4 + index - int(questions.distance[row, index])
            assert asked.tokens[row, at] > 4 + 2  # a pair
            assert bool(questions.column[row, index]) == (at in (1, 3))
            assert questions.pairs[row, index] == asked.pairs[row]


def test_the_tables_by_hand(results):
    tables = findings(results).tables
    assert tables["reach"].columns == ["pair", "questions", "all", "near"]
    assert tables["reach"].rows == [
        ["in the window", 2, 1, 1], ["beyond, in a column", 1, 1, 0], ["beyond, elsewhere", 1, 1, 0],
        ["anywhere", 4, 1, 0.5],
    ]  # fmt: skip
    assert tables["pairs"].rows == [["1", 2, 1, 0.5], ["4", 2, 1, 0.5]]
    assert tables["distance"].rows == [["1", 1, 1, 1], ["2", 1, 1, 1], ["6", 1, 1, 0], ["7", 1, 1, 0]]


def test_distances_are_cut_where_the_window_ends(results):
    results = results._replace(task=Recall(places=32, values=2, pairs=(1,)), window=20)
    assert list(by_distance(results)) == [
        "1 - 7", "8 - 15", "16 - 19", "20 - 23", "24 - 31", "32 - 39", "40 - 47", "48 - 55", "56 - 63",
    ]  # fmt: skip


def test_sentences_say_what_the_numbers_are(results):
    said = findings(results).sentences
    assert "all 100.0% and 100.0%; near 100.0% and 0.0%. A guess is right in 50.0%." in said[0]
    assert said[1].startswith("With 1 pairs to remember, and with 4,")
    right = dict(results.right, columns=(results.questions.distance < 3) | results.questions.column)
    said = findings(results._replace(right=right)).sentences
    assert said[1] == "Beyond the window columns finds 100.0% of what stands in a column, and 0.0% of what does not."


def test_the_picture(context):
    figure = RecallConfig(**TINY, steps=1, evaluated=20).build().run(context).figures["recall"]
    distance, pairs = figure.axes
    assert [line.get_label() for line in pairs.get_lines()] == [*NAMES, "a guess"]
    assert [label.get_text() for label in pairs.get_xticklabels()] == ["1", "4"]
    assert distance.get_ylabel() == "right answers"


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"pairs": [33]}, "study.pairs: 33 do not fit study.places 32"),
        ({"batch_size": 4}, "study.batch_size: 4 texts are too few for 5 numbers of pairs"),
        ({"evaluated": 2}, "study.evaluated: 2 texts"),
        ({"n_layer": 2000}, "study.n_layer: "),
    ],
)
def test_settings_that_do_not_go_together_are_refused(wrong, told):
    with pytest.raises(UserError, match=told):
        RecallConfig(**wrong).build()
