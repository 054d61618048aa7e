"""What a model is shown, how often, and what it keeps."""

import pytest
import torch

from gpt.generation.decoder import Decoder
from gpt.generation.reader import Reader, Windows, following, pad_left, prefill, where_padded

CPU = torch.device("cpu")
PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6, 5], [7]]  # of 9 and 1 tokens
LONG = [[(5 * i) % 29 for i in range(50)], [7], [3, 1, 4]]  # the first is longer than the context, 16
NEW = 48
"""Tokens to write: three contexts."""

ENDLESS = ["sliding_window-alibi", "sliding_window-none", "sliding_window-rope"]


@pytest.fixture(params=ENDLESS)
def endless(request, build_model):
    model = build_model(request.param.split("-"))
    assert model.endless
    return model


def relative_error(actual, expected) -> float:
    return ((actual - expected).abs().max() / expected.abs().max()).item()


@torch.inference_mode()
def write(reader, count=NEW):
    """Greedy tokens, (rows, count), and the logits that they are from, (rows, count, 29)."""
    logits = []
    for _ in range(count):
        logits.append(reader.logits())
        reader.append(logits[-1].argmax(-1))
    logits = torch.stack(logits, dim=1)
    return logits.argmax(-1), logits


@pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS], ids=["alone", "padded"])
def test_prefill_in_chunks_of_any_size(build_model, variant, prompts):
    model = build_model(variant)
    tokens, where = pad_left(prompts, CPU), where_padded([len(p) for p in prompts], CPU)
    with torch.inference_mode():
        expected, whole = prefill(model, tokens, where, 16)
        after = Decoder(model)(expected.argmax(-1, keepdim=True), following(where), whole)
        for size in range(1, tokens.size(1) + 1):
            cache = model.build_cache(16)
            for start in range(0, tokens.size(1), size):
                part = slice(start, start + size)
                there = None if where is None else type(where)(*(t[:, part] for t in where))
                hidden = model.hidden(tokens[:, part], there, cache)
            assert relative_error(model.logits(hidden[:, -1]), expected) < 1e-5
            chunked = Decoder(model)(expected.argmax(-1, keepdim=True), following(where), cache)
            assert relative_error(chunked, after) < 1e-5


@pytest.mark.parametrize("new, capacity", [(3, 12), (7, 16), (8, 16), (500, 16)])
def test_the_cache_is_prompt_and_new_tokens_long_and_of_windows_never_more_than_the_context(build_model, new, capacity):
    windows = Windows(build_model(), PROMPTS, new)
    windows.logits()
    assert windows.cache.memories[0].capacity == capacity
    assert Reader(build_model(), PROMPTS, new).capacity == 9 + new


def test_rows_of_one_length_are_not_padded_so_the_model_takes_its_fast_path():
    assert where_padded([4, 4], CPU) is None
    assert where_padded([1, 3], CPU).position.tolist() == [[-1, -1, 0], [0, 1, 2]]
    assert following(where_padded([1, 3], CPU)).position.tolist() == [[1], [3]]


# Models that read on beyond their context


@pytest.mark.parametrize("prompt", [PROMPTS[0], LONG[0]], ids=["short", "longer than the context"])
def test_each_token_is_as_in_one_forward_over_the_whole_text(endless, prompt):
    [tokens], [logits] = write(Reader(endless, [prompt], NEW))
    with torch.inference_mode():
        whole = endless(torch.tensor([[*prompt, *tokens.tolist()]]))[0]
    assert relative_error(logits, whole[len(prompt) - 1 : -1]) < 1e-5


def test_rows_beside_each_other_are_as_alone(endless):
    tokens, logits = write(Reader(endless, LONG, NEW))
    for row, prompt in enumerate(LONG):
        [own_tokens], [own] = write(Reader(endless, [prompt], NEW))
        assert relative_error(logits[row], own) < 1e-5
        assert tokens[row].tolist() == own_tokens.tolist()


@pytest.mark.parametrize("prompts", [LONG[:1], LONG], ids=["alone", "padded"])
def test_neither_tokens_nor_memory_grow_and_each_token_is_seen_once(endless, prompts, monkeypatch):
    seen, hidden = [], endless.hidden
    monkeypatch.setattr(endless, "hidden", lambda tokens, *more: seen.append(tokens.shape) or hidden(tokens, *more))
    reader, held = Reader(endless, prompts, 1000), []
    for _ in range(NEW):
        write(reader, 1)
        held.append((reader.cache.nbytes(), reader.unseen.shape))
    rows = len(prompts)
    assert seen == [(rows, 50)] + [(rows, 1)] * (NEW - 1)
    assert len(set(held)) == 1
    # 2 layers of keys and values of 2 heads of 8, in fp32, of 4 sinks and a window of 4: 2048 bytes, and their wheres
    assert held[0][0] < 3000 * rows
    assert held[0][1] == (rows, 1)


def test_all_others_slide(build_model, variant):
    model = build_model(variant)
    assert model.endless == ("-".join(variant) in ENDLESS)
