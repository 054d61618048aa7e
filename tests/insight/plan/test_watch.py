"""Storages that are counted."""

import torch

from gpt.insight.plan.watch import LARGE, pretended

CPU = torch.device("cpu")


def test_a_storage_counts_once_and_until_its_last_tensor_ends():
    with pretended(CPU) as watch:
        numbers = torch.empty(100)
        view = numbers[:10]
        assert watch.live == 400
        more = numbers * 2
        assert watch.live == watch.peak == 800
        del numbers, more
        assert (watch.live, watch.peak) == (400, 800), "the view holds all of it"
        del view
        assert watch.live == 0
        watch.restart()
        assert watch.peak == 0


def test_what_a_backward_needs_lives_until_then():
    with pretended(CPU) as watch:
        weight = torch.ones(10, 10, requires_grad=True)
        product = (torch.ones(5, 10) @ weight).exp()  # keeps its input for the weight, and its output
        assert watch.live == 400 + 200 + 200
        product.sum().backward()
        del product
        assert watch.live == 400 + 400, "the weight and its gradient"


def test_what_is_large_is_told_apart():
    with pretended(CPU) as watch:
        tensors = [torch.empty(LARGE, dtype=torch.uint8), torch.empty(LARGE - 1, dtype=torch.uint8)]
        del tensors
        assert (watch.most_large, watch.most_small) == (LARGE, LARGE - 1)
