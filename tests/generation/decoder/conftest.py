"""Texts that a decoder is told token by token the truth: the uncached fp32 model on the same tokens."""

import pytest
import torch

from gpt.generation.reader import following, pad_left, prefill, where_padded

CPU = torch.device("cpu")


@pytest.fixture(scope="session")
def teacher_forced():
    """Logits of a decoder on tokens that are not its own of the fp32 model: (rows, new, vocabulary) each."""

    @torch.inference_mode()
    def teacher_forced(truth, model, decoder, prompts, new=6):
        texts = [[*prompt, *((7 * i + 3) % 29 for i in range(new))] for prompt in prompts]
        expected = torch.stack([truth(torch.tensor([text]))[0, -new - 1 :] for text in texts])
        where = where_padded([len(prompt) for prompt in prompts], CPU)
        logits, cache = prefill(model, pad_left(prompts, CPU), where, decoder.room(max(map(len, texts))))
        seen = [logits]
        for step in range(new):
            where = following(where)
            token = torch.tensor([[text[step - new]] for text in texts])
            seen.append(decoder(token, where, cache))
        return torch.stack(seen, dim=1).float(), expected

    return teacher_forced


@pytest.fixture(scope="session")
def assert_same_choice():
    """The same argmax wherever the true two largest logits are farther apart than `tolerance` of the largest."""

    def assert_same_choice(ours, truth, tolerance):
        largest = truth.abs().amax()
        assert (ours - truth).abs().max() <= tolerance * largest
        two = truth.topk(2).values
        clear = two[..., 0] - two[..., 1] > 2 * tolerance * largest
        assert torch.equal(ours.argmax(-1)[clear], truth.argmax(-1)[clear])

    return assert_same_choice
