"""What holds for every attention whatever its settings, the rows, their documents and padding, and the chunks."""

from itertools import pairwise

import pytest
import torch
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from gpt.config import UserError, variant_class, variant_names

SETTINGS = {
    "window": st.integers(1, 30),
    "sinks": st.integers(0, 6),
    "stride": st.integers(1, 9),
    "layers": st.sampled_from(["S", "SL", "SSL", "L"]),
}
"""By their name, in whichever variant has them."""

for_any = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # `build` keeps nothing
)


@pytest.fixture(params=variant_names("gpt.model.attention"))
def name(request):
    return request.param


def draw_model(data, build, name):
    """In fp64, where what is 0 in truth, as gradients of scores are where each token sees one, is not lost in noise."""
    fields = variant_class("gpt.model.attention", name).model_fields
    drawn = st.fixed_dictionaries(
        {
            "attention": st.fixed_dictionaries(
                {"name": st.just(name), **{key: drawn for key, drawn in SETTINGS.items() if key in fields}}
            ),
            "position": st.sampled_from(variant_names("gpt.model.position")),
            "n_kv_head": st.sampled_from([1, 2, 4]),
            "n_layer": st.integers(1, 3),
        }
    )
    try:
        return build(**data.draw(drawn), context=400, d_model=16).double()
    except UserError:  # attention and position that do not go together
        reject()


def draw_text(data, layout, longest):
    """Up to three rows of documents and padding: tokens, and where they are, or None where they are not told."""
    spans = st.lists(st.integers(1, longest) | st.sampled_from([1, 2, -1, -3]), min_size=1, max_size=4)
    rows = data.draw(st.lists(spans, min_size=1, max_size=3))
    length = max(sum(map(abs, row)) for row in rows)
    for row in rows:
        if missing := length - sum(map(abs, row)):
            row.insert(data.draw(st.sampled_from([0, len(row)])), -missing)
    where = layout(rows)
    assume((where.position >= 0).any())
    if data.draw(st.booleans()):
        where = where._replace(document=7 - where.document)  # a document's number says nothing of its order
    return torch.randint(50, (len(rows), length)), data.draw(st.sampled_from([where, where, None]))


@pytest.mark.parametrize("longest", [14, 90], ids=["short", "long"])
@for_any
@given(st.data())
def test_outputs_and_gradients_are_those_of_the_weights_written_out(
    build, name, longest, layout, written_out, assert_same, data
):
    model = draw_model(data, build, name)
    assert_same(model, written_out(model), *draw_text(data, layout, longest))


@pytest.mark.parametrize("longest", [14, 90], ids=["short", "long"])
@for_any
@given(st.data())
def test_cached_equals_uncached(build, name, longest, layout, fed, assert_close, data):
    model = draw_model(data, build, name)
    tokens, where = draw_text(data, layout, longest)
    length = tokens.size(1)
    cuts = data.draw(st.lists(st.integers(0, length), max_size=6).map(sorted))
    sizes = [end - start for start, end in pairwise([0, *cuts, length]) if end > start]
    there = torch.ones_like(tokens, dtype=torch.bool) if where is None else where.position >= 0
    with torch.no_grad():
        assert_close(fed(model, tokens, where, sizes)[there], model(tokens, where=where)[there])


@for_any
@given(st.data())
def test_a_document_in_a_row_equals_itself_alone(build, name, layout, assert_close, data):
    model = draw_model(data, build, name)
    tokens, where = draw_text(data, layout, longest=14)
    assume(where is not None)
    with torch.no_grad():
        logits = model(tokens, where=where)
        for row, document in {
            (row, where.document[row, i].item()) for row, i in (where.position >= 0).nonzero().tolist()
        }:
            its = (where.document[row] == document) & (where.position[row] >= 0)
            assert_close(logits[row, its], model(tokens[row, None, its])[0])
