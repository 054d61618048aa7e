import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from gpt.config import UserError
from gpt.generation.generate import (
    NOTHING,
    crop,
    evaluation_mode,
    generate,
    tokens_in,
)
from gpt.generation.settings import GenerationSettings
from gpt.model.gpt import GPT

CPU = torch.device("cpu")
PROMPTS = [
    [3, 1, 4, 1, 5, 9, 2, 6, 5],
    [7],
    [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5],
]  # 9, 1 and 16 tokens


class Recording(GPT):
    """A model that keeps the last logits of each call."""

    @classmethod
    def of(cls, model):
        recording = cls(model.config).eval()
        recording.load_state_dict(model.state_dict())
        recording.seen = []
        return recording

    def logits(self, hidden):
        logits = super().logits(hidden)
        self.seen.append(logits)
        return logits


def greedy(**changes) -> GenerationSettings:
    return GenerationSettings(**{"temperature": 0.0, "max_new_tokens": 40, **changes})


def run(model, prompts, chosen) -> list[list[int]]:
    """The tokens of each row."""
    steps = list(generate(model, prompts, chosen, model.config.vocab_size))
    return torch.stack(steps, dim=1).tolist() if steps else [[] for _ in prompts]


@torch.inference_mode()
def slow(model, prompt, steps, penalty=1.0):
    """The oracle: the whole window, or text, through the model for each token. Greedy tokens and their logits."""
    window, tokens, logits = list(prompt), [], []
    for _ in range(steps):
        logits.append(model(torch.tensor([window]))[0, -1])
        for token in {*prompt, *tokens} if penalty != 1 else ():
            logits[-1][token] *= penalty if logits[-1][token] < 0 else 1 / penalty
        tokens.append(logits[-1].argmax().item())
        window.append(tokens[-1])
        if len(window) > model.config.context and not model.endless:
            window = window[max(1, model.config.context // 4) :]
    return tokens, torch.stack(logits)


def relative_error(actual, expected) -> float:
    return ((actual - expected).abs().max() / expected.abs().max()).item()


# Equal to the slow, uncached loop


def test_greedy_equals_the_uncached_loop_past_the_context(build_model, variant):
    model = Recording.of(build_model(variant))
    for prompt in PROMPTS:
        model.seen.clear()
        [tokens] = run(model, [prompt], greedy())  # 40 tokens: a context of 16 slides at least 6 times
        logits = torch.stack(model.seen)[:, 0]
        expected_tokens, expected = slow(model, prompt, 40)
        assert relative_error(logits, expected) < 1e-5
        assert tokens == expected_tokens
        assert len(set(tokens)) > 3  # it says something


def test_a_batch_equals_its_rows_alone(build_model, variant):
    model = Recording.of(build_model(variant))
    together = run(model, PROMPTS, greedy())
    logits = torch.stack(model.seen, dim=1)
    for row, prompt in enumerate(PROMPTS):
        tokens, expected = slow(model, prompt, 40)
        assert relative_error(logits[row], expected) < 1e-5
        assert together[row] == tokens


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    context=st.sampled_from([1, 2, 3, 8]),
    new=st.integers(1, 20),
)
def test_any_lengths_in_any_context(build_model, lengths, context, new):
    model = build_model(("sdpa", "learned"), context=context)
    prompts = [[(7 * i + row) % 29 for i in range(min(length, context))] for row, length in enumerate(lengths)]
    rows = run(model, prompts, greedy(max_new_tokens=new))
    assert rows == [slow(model, prompt, new)[0] for prompt in prompts]


# Samples


def test_sample_i_does_not_depend_on_how_many_are_drawn(build_model):
    model = build_model()
    chosen = {"temperature": 1.0, "max_new_tokens": 30}
    many = run(model, PROMPTS, greedy(num_samples=4, **chosen))
    for number, prompt in enumerate(PROMPTS):
        for count in (1, 2, 4):
            few = run(model, [prompt], greedy(num_samples=count, **chosen))
            assert few == many[4 * number : 4 * number + count]
    assert len({tuple(row) for row in many}) == 12


def test_the_seed_decides(build_model):
    model, one = build_model(), {"temperature": 1.0, "seed": 1}
    assert run(model, PROMPTS, greedy(**one)) == run(model, PROMPTS, greedy(**one))
    assert run(model, PROMPTS, greedy(**one)) != run(model, PROMPTS, greedy(**one | {"seed": 2}))


def test_a_longer_text_begins_as_the_shorter(build_model):
    short, long = (run(build_model(), PROMPTS, greedy(temperature=1.0, max_new_tokens=n)) for n in (5, 30))
    assert short == [row[:5] for row in long]


def test_ids_beyond_the_tokenizer_are_never_chosen(build_model):
    model = build_model()
    for temperature in (0.0, 5.0):
        steps = generate(model, PROMPTS, greedy(temperature=temperature, num_samples=8), vocab_size=6)
        assert max(step.max().item() for step in steps) < 6


def test_the_penalty_counts_prompt_and_new_tokens_those_that_slid_out_too(build_model):
    model = build_model()
    rows = run(model, PROMPTS, greedy(repetition_penalty=1.5))
    assert rows == [slow(model, prompt, 40, penalty=1.5)[0] for prompt in PROMPTS]
    assert rows != run(model, PROMPTS, greedy())


def test_which_tokens_stand_in_a_row_not_its_padding():
    assert tokens_in([[1, 1, 3], [2], [9]], 4, CPU).int().tolist() == [
        [0, 1, 0, 1],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
    ]


# Past the context


def test_stop_ends_each_row_when_its_own_window_is_full(build_model):
    model = build_model()
    rows = run(model, PROMPTS, greedy(overflow="stop"))
    written = [[token for token in row if token != NOTHING] for row in rows]
    assert [len(tokens) for tokens in written] == [7, 15, 0]  # prompts of 9, 1 and 16
    assert written == [slow(model, p, n)[0] if n else [] for p, n in zip(PROMPTS, (7, 15, 0), strict=True)]
    assert all(row[len(tokens) :] == [NOTHING] * (15 - len(tokens)) for row, tokens in zip(rows, written, strict=True))


def test_stop_with_no_room_at_all_ends_before_the_first_step(build_model):
    assert list(generate(build_model(), [PROMPTS[2]], greedy(overflow="stop"), 29)) == []


def test_error_refuses_before_the_first_step(build_model):
    model = build_model()
    with pytest.raises(UserError, match=r"9 tokens, and max_new_tokens=8 exceed the model's context of 16"):
        generate(model, PROMPTS[:1], greedy(overflow="error", max_new_tokens=8), 29)
    assert len(run(model, PROMPTS[:1], greedy(overflow="error", max_new_tokens=7))[0]) == 7
    with pytest.raises(UserError, match="overflow=error: prompt 1 of 1, of 17 tokens,"):
        generate(model, [[1] * 17], greedy(overflow="error", max_new_tokens=1), 29)


def test_crop_keeps_the_end_and_says_so():
    prompts, notices = crop([[1, 2, 3], [1, 2, 3, 4, 5]], 3, "slide")
    assert prompts == [[1, 2, 3], [3, 4, 5]]
    assert notices == ["prompt 2 of 2 has 5 tokens, the model's context is 3: its first 2 are left out"]
    _, notices = crop([[1, 2, 3], [1, 2, 3, 4, 5]], 3, "stop")
    told = "nothing is written after it; overflow=slide goes on"
    assert notices == [f"prompt 2 of 2 has 5 tokens, the model's context is 3: {told}"]
    assert crop([[1, 2, 3], (1, 2, 3, 4, 5)], None, "slide") == ([[1, 2, 3], [1, 2, 3, 4, 5]], [])


@pytest.mark.parametrize("attention, position", [("sliding_window", "rope"), ("sliding_window", "none")])
def test_a_prompt_beyond_the_context_of_an_endless_model_is_read_as_a_whole(build_model, attention, position):
    model = Recording.of(build_model((attention, position)))
    prompts = [[(5 * i) % 29 for i in range(length)] for length in (50, 3, 17)]  # of a context of 16
    together = run(model, prompts, greedy())
    logits = torch.stack(model.seen, dim=1)
    for row, prompt in enumerate(prompts):
        tokens, expected = slow(model, prompt, 40)
        assert relative_error(logits[row], expected) < 1e-5
        assert together[row] == tokens


def test_an_endless_model_ends_at_its_context_where_that_is_asked_for(build_model):
    model = build_model(("sliding_window", "rope"))
    rows = run(model, PROMPTS, greedy(overflow="stop"))
    assert [sum(token != NOTHING for token in row) for row in rows] == [7, 15, 0]  # prompts of 9, 1 and 16
    with pytest.raises(UserError, match="9 tokens, and max_new_tokens=8 exceed the model's context of 16"):
        run(model, PROMPTS[:1], greedy(overflow="error", max_new_tokens=8))
    with pytest.raises(ValueError, match="prompt 0 has 17 tokens"):
        run(model, [[1] * 17], greedy(overflow="stop"))


# The model is left as it was


def test_dropout_is_off_inside_and_each_module_s_mode_comes_back(build_model):
    model = build_model()
    model.train()
    model.blocks[0].eval()  # frozen by its owner
    before = [module.training for module in model.modules()]
    steps = generate(model, PROMPTS, greedy(), 29)
    assert [module.training for module in model.modules()] == before
    next(steps)
    assert not any(module.training for module in model.modules())
    assert not torch.is_inference_mode_enabled()  # between steps the caller's mode holds
    steps.close()
    assert [module.training for module in model.modules()] == before


def test_the_mode_comes_back_after_an_error(build_model):
    model = build_model().train()
    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        raise ZeroDivisionError
    assert model.training


# A programmer's mistakes


@pytest.mark.parametrize(
    "prompts, vocab_size, told",
    [
        ([], 29, "no prompt"),
        ([[1], []], 29, "prompt 1 has no token"),
        ([[1] * 17], 29, "prompt 0 has 17 tokens"),
        ([[1, 29]], 29, "token id 29"),
        ([[-1]], 29, "token id -1"),
        ([[1]], 30, "vocab_size 30"),
        ([[1]], 0, "vocab_size 0"),
    ],
)
def test_what_the_model_cannot_take_is_refused_at_once(build_model, prompts, vocab_size, told):
    with pytest.raises(ValueError, match=told):
        generate(build_model(), prompts, greedy(), vocab_size)
