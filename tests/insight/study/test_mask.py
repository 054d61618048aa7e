"""Study `mask`: the weights [0.2, 0.3, 0.5] by hand, and who sees whom."""

import math

import pytest
import torch

from gpt.config import variant_names
from gpt.insight.study.mask import HUGE, MaskConfig, before, renormalised, results
from gpt.insight.visible import masks, share

LOG = torch.tensor([0.2, 0.3, 0.5]).log()
VARIANTS = variant_names("gpt.model.attention")


@pytest.fixture(scope="module")
def seen():
    return masks(32)


def test_only_the_mask_before_the_softmax_sums_to_1():
    found = results(math.log(0.5), torch.device("cpu"))
    assert found["no mask"].weights == pytest.approx([0.2, 0.3, 0.5])
    assert found["after"].weights == pytest.approx([0.2, 0.3, 0])
    assert found["after"].total == pytest.approx(0.5)
    for way in ("before", "after, renormalised"):
        assert found[way].weights == pytest.approx([0.4, 0.6, 0])
        assert found[way].total == pytest.approx(1)


def test_a_key_masked_after_the_softmax_still_acts():
    """By p_i · p_h each: 0.2 · 0.5 + 0.3 · 0.5; without a mask 0.5 · (1 - 0.5) more."""
    found = results(math.log(0.5), torch.device("cpu"))
    assert found["before"].leak == 0
    assert found["after"].leak == pytest.approx(0.25)
    assert found["no mask"].leak == pytest.approx(0.5)
    assert found["after, renormalised"].leak == pytest.approx(0, abs=1e-6)


def test_a_huge_hidden_score_leaves_nothing_to_renormalise():
    found = results(HUGE, torch.device("cpu"))
    assert found["after"].weights == [0, 0, 0]
    assert all(map(math.isnan, found["after, renormalised"].weights))
    assert found["before"].weights == pytest.approx([0.4, 0.6, 0])


@pytest.mark.parametrize("hidden", [-5.0, 0.0, 5.0])
def test_before_is_what_renormalising_gives_on_paper(hidden):
    scores = torch.cat((LOG[:2], torch.tensor([hidden])))
    assert torch.allclose(before(scores), renormalised(scores))


def test_each_variant_and_packed_documents_have_a_mask(seen):
    assert list(seen) == [*VARIANTS, "documents"]
    for mask in seen.values():
        assert mask.shape == (32, 32)
        assert not mask.triu(1).any()
        assert mask.diagonal().all()


def test_masks_by_hand(seen):
    """In a context of 32: a window of 8, 4 sinks, a stride of 5; documents of 12, 12 and 8."""
    assert all(share(seen[name]) == 1 for name in ("reference", "sdpa", "linear"))
    last = [*range(4), *range(24, 32)]
    assert seen["sliding_window"][31].nonzero().flatten().tolist() == last
    assert seen["sparse"][31].nonzero().flatten().tolist() == sorted({*last, 4, 9, 14, 19, 24, 29})
    assert int(seen["documents"].sum()) == 12 * 13 // 2 + 12 * 13 // 2 + 8 * 9 // 2
    assert not seen["documents"][12, :12].any()


def test_a_picture_of_all_masks_and_of_each(context):
    findings = MaskConfig(context=8).build().run(context)
    assert list(findings.figures) == ["weights", "masks", *(f"mask_{name}" for name in (*VARIANTS, "documents"))]
    titles = [panel.get_title() for panel in findings.figures["masks"].axes if panel.get_title()]
    assert len(titles) == len(VARIANTS) + 1
    assert "reference: all causal pairs" in titles
    (alone,) = findings.figures["mask_documents"].axes
    assert alone.get_title() == f"documents: {(6 + 6 + 3) / 36:.0%} of the causal pairs"
    assert (alone.get_xlabel(), alone.get_ylabel()) == ("key", "query")
    top, bottom = alone.get_ylim()[::-1]
    assert (top, bottom) == (0, 8)  # the first query is the uppermost row


def test_the_tables(context):
    tables = MaskConfig(context=8).build().run(context).tables
    weights = {(row[0], row[1]): row[2:] for row in tables["weights"].rows}
    assert weights["log 0.5", "after"] == pytest.approx([0.2, 0.3, 0, 0.5, 0.25])
    assert weights["10000", "before"] == pytest.approx([0.4, 0.6, 0, 1, 0])
    pairs = {row[0]: row[1:] for row in tables["masks"].rows}
    assert pairs["reference"] == [36, "100.0%", 8]
    assert pairs["documents"] == [15, "41.7%", 2]


@pytest.mark.parametrize("context_length", [4, 5, 33, 100])
def test_any_context_is_drawn(context_length, context):
    figure = MaskConfig(context=context_length).build().run(context).figures["mask_reference"]
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(set(ticks)) == len(ticks)
    assert (ticks[0], ticks[-1]) == ("0", str(context_length - 1))
