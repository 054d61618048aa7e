"""In which settings runs differ, where parts of them have settings of their own."""

from gpt.insight.compare.difference import cell, differing, flat
from gpt.training.defaults import default_settings, variant_defaults


def settings(**more):
    return {**default_settings(), **more}


def optimizer(name, **more):
    return {"name": name, **variant_defaults("optimizer", name), **more}


def test_what_a_variant_brings_is_no_difference_of_its_own():
    runs = [flat(settings(optimizer=optimizer(name))) for name in ("muon", "adamw")]
    assert differing(runs) == ["optimizer.name"]


def test_what_was_changed_of_a_variant_is_one():
    runs = [flat(settings(optimizer=optimizer("muon"))), flat(settings(optimizer=optimizer("adamw", lr=0.5)))]
    assert differing(runs) == ["optimizer.name", "optimizer.lr"]
    assert [cell(run, "optimizer.lr") for run in runs] == ["0.006", "0.5"]


def test_with_one_variant_each_setting_counts():
    runs = [flat(settings(optimizer=optimizer("adamw", lr=lr))) for lr in (0.1, 0.2, 0.1)]
    assert differing(runs) == ["optimizer.lr"]


def test_names_and_reporting_are_not_told():
    runs = [flat(settings(name=name, logger={}, debug=name == "b")) for name in "ab"]
    assert differing(runs) == []


def test_a_number_is_not_the_word_for_it():
    assert differing([{"a": 1}, {"a": "1"}]) == ["a"]
    assert differing([{"a": [1]}, {"a": [1]}, {}]) == ["a"]
