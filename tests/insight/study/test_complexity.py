"""Study `complexity`: small runs of it, and the tables and sentences that are made of known numbers."""

import pytest

from gpt.config import UserError, variant_names
from gpt.insight.cost.costs import Costs, Generation, Heads
from gpt.insight.cost.page import BASE, findings
from gpt.insight.cost.plot import draw
from gpt.insight.study.complexity import ComplexityConfig

VARIANTS = variant_names("gpt.model.attention")
SMALL = {
    "lengths": [128, 32, 64], "n_head": 2, "n_kv_head": 2, "head_dim": 8, "window": 16, "sinks": 2, "stride": 8,
    "repeats": 1, "min_seconds": 1e-4, "redos": 0, "windows": 3,
}  # fmt: skip


@pytest.fixture
def costs() -> Costs:
    """Of two variants: sdpa grows with the square and is left out at 8k, linear with the length."""
    made = Costs([BASE, "linear"], [1024, 2048, 4096, 8192], [1024, 2048, 4096, 8192])
    for length in made.lengths:
        if length < 8192:
            made.seconds.known(BASE)[length] = 1e-6 * length**2
            made.peak.known(BASE)[length] = 4 * length**2
        made.seconds.known("linear")[length] = 1e-3 * length
        made.peak.known("linear")[length] = 1000 * length
        for name, by_length in ((BASE, length), ("linear", 1024)):
            made.token_seconds.known(name)[length] = 1e-6 * by_length
            made.cache.known(name)[length] = 2048 * by_length
    for series in (made.seconds, made.peak):
        series.left_out[BASE, 8192] = "needs 67 s"
    made.heads = [Heads("MHA", 2, 8192 * 512, 8192 * 512), Heads("MQA", 1, 8192 * 256, 8192 * 256)]
    made.generations = [Generation("linear", [[1e-3] * 90 + [2e-3] * 10], 1024)]
    return made


def test_what_is_measured(context, told):
    found = ComplexityConfig(**SMALL).build().run(context)
    for name in ("training", "memory", "decoding", "cache", "speed"):
        rows = found.tables[name].rows
        assert [row[0] for row in rows] == [32, 64, 128]
        assert [len(row) for row in rows] == [1 + len(VARIANTS)] * 3
    assert all(cell > 0 for row in found.tables["training"].rows for cell in row)
    assert [row[0] for row in found.tables["exponents"].rows] == list(VARIANTS)
    assert {row[0] for row in found.tables["generation"].rows} == {"linear", "sdpa", "sliding_window"}
    assert set(found.figures) == {"complexity", "generation"}
    assert told.done == pytest.approx(told.total)


def test_caches_and_heads(context):
    """A key and a value of 8 numbers in 4 bytes for each of 2 heads: 128 bytes a token; a window holds 16."""
    tables = ComplexityConfig(**SMALL).build().run(context).tables
    caches = {
        column: [row[index] for row in tables["cache"].rows] for index, column in enumerate(tables["cache"].columns)
    }
    assert caches["sdpa (KiB)"] == caches["reference (KiB)"] == [4, 8, 16]
    assert len(set(caches["linear (KiB)"])) == len(set(caches["sliding_window (KiB)"])) == 1
    assert tables["heads"].rows == [["MHA", 2, 128, 128, 128 * 128 / 1e6], ["MQA", 1, 64, 64, 64 * 128 / 1e6]]


def test_nothing_is_trained_that_takes_too_long(context):
    """Two lengths are needed to know; the third one is left out for all, and still decoded."""
    found = ComplexityConfig(**{**SMALL, "max_seconds": 1e-9}).build().run(context)
    assert all(str(cell).startswith("needs 0 s") for cell in found.tables["training"].rows[2][1:])
    assert found.tables["memory"].rows[2] == found.tables["training"].rows[2]
    assert found.tables["speed"].rows[2][1:] == [None] * len(VARIANTS)
    assert all(cell > 0 for cell in found.tables["decoding"].rows[2])
    assert any(sentence.startswith("linear was not trained on 128 tokens (needs 0 s)") for sentence in found.sentences)


def test_the_tables_by_hand(costs):
    tables = findings(costs).tables
    assert tables["training"].columns == ["tokens", "sdpa (ms)", "linear (ms)"]
    assert tables["training"].rows[0] == [1024, pytest.approx(1048.576), pytest.approx(1024)]
    assert tables["training"].rows[3] == [8192, "needs 67 s", pytest.approx(8192)]
    assert tables["memory"].rows[3] == [8192, "needs 67 s", pytest.approx(8.192)]
    assert tables["speed"].rows[2] == [4096, 1, pytest.approx(4.096)]
    assert tables["speed"].rows[3] == [8192, None, None]
    assert tables["decoding"].rows[1] == [2048, pytest.approx(2048), pytest.approx(1024)]
    assert tables["cache"].rows[1] == [2048, 4096, 2048]
    assert tables["exponents"].rows == [
        ["sdpa", 2, 2, "3 lengths, 1,024 - 4,096", 1, 1, "4 lengths, 1,024 - 8,192"],
        ["linear", 1, 1, "4 lengths, 1,024 - 8,192", 0, 0, "4 lengths, 1,024 - 8,192"],
    ]
    assert tables["generation"].rows == [["linear", 1, 2, 2, 1]]


def test_the_sentences_by_hand(costs):
    costs.measurements, costs.disturbed = 9, 2
    said = findings(costs).sentences
    assert "2.00 for sdpa (3 lengths, 1,024 - 4,096), 1.00 for linear" in said[0]
    assert "On 4,096 tokens" in said[1]
    assert "linear 4.1 times" in said[1]
    assert "16,384 KiB for sdpa, 2,048 KiB for linear" in said[2]
    assert "MQA with 1 takes 50%" in said[3]
    assert "2.00 times with linear" in said[4]
    assert said[5] == "sdpa was not trained on 8,192 tokens (needs 67 s)."
    assert said[6].startswith("2 of 9 times")


def test_each_cost_is_drawn_as_far_as_it_was_measured(context):
    config = ComplexityConfig(**SMALL)
    found = config.build().run(context)
    panels = found.figures["complexity"].axes
    assert len(panels) == 4
    for panel in panels:
        drawn = {line.get_label(): line for line in panel.get_lines()}
        assert set(VARIANTS) <= set(drawn)
        assert [line.get_text() for line in panel.get_xticklabels()] == ["32", "64", "128"]
    training = {line.get_label(): line.get_ydata() for line in panels[0].get_lines()}
    assert training["sdpa"].tolist() == pytest.approx(
        [row[1 + VARIANTS.index("sdpa")] / 1e3 for row in found.tables["training"].rows]
    )


def test_a_guide_is_a_line_of_its_slope(costs):
    costs.names = VARIANTS
    panel = draw(costs).axes[0]
    guides = [line for line in panel.get_lines() if line.get_label() not in VARIANTS]
    assert [line.get_linewidth() for line in guides] == [1, 1]
    for slope, line in zip((1, 2), guides, strict=True):
        (x0, x1), (y0, y1) = line.get_xdata(), line.get_ydata()
        assert y1 / y0 == pytest.approx((x1 / x0) ** slope)


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"n_kv_head": 3}, "study.n_kv_head: study.n_head 4 is not divisible by 3"),
        ({"n_head": 1 << 20, "n_kv_head": 1}, "study.n_head: expected less than or equal to 65536"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused_before_anything_is_measured(wrong, told):
    with pytest.raises(UserError, match=told):
        ComplexityConfig(**wrong).build()
