"""Memory that is found without taking it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gpt.device import choose_precision
from gpt.insight.plan.memory import cache_memory, training_memory

FP32 = choose_precision("fp32", torch.device("cpu"))
HERE = Path(__file__).parent
GROWN = ["model.d_model=128", "model.n_layer=2", "model.context=128", "batch_size=16"]


def numbers(model):
    return sum(p.numel() for p in model.parameters())


def test_weights_gradients_and_the_state_of_each_optimizer(settings):
    adamw, muon = settings("optimizer=adamw"), settings("optimizer=muon")
    model = adamw.build_model(257)
    matrices = sum(p.numel() for name, p in model.named_parameters() if name.startswith("blocks.") and p.ndim == 2)
    vectors = len(list(model.parameters()))
    found = training_memory(adamw, 257, FP32, 1)
    assert found.gradients == 4 * numbers(model)
    assert found.gradients <= found.weights <= found.gradients + 4 * 32 * 16 * 2, "and a table of rotations at most"
    assert found.optimizer == 8 * numbers(model) + 4 * vectors, "two moments, and a count a parameter"
    assert training_memory(muon, 257, FP32, 1).optimizer < 4 * matrices + 8 * (numbers(model) - matrices) + 4 * vectors


def test_what_is_frozen_has_neither_gradient_nor_state(settings):
    all_of_it = training_memory(settings("optimizer=adamw"), 257, FP32, 1)
    part = training_memory(settings("optimizer=adamw", "freeze=[embedding.*]"), 257, FP32, 1)
    assert all_of_it.weights == part.weights
    assert all_of_it.gradients - part.gradients == 4 * 257 * 16
    assert all_of_it.optimizer - part.optimizer == 8 * 257 * 16 + 4


def test_activations_go_with_the_sequences_at_once(settings):
    four, two = (training_memory(settings("batch_size=4"), 257, FP32, n).activations for n in (1, 2))
    assert two == pytest.approx(four / 2, rel=0.05)


@pytest.mark.parametrize("attention", ["linear", "reference", "sdpa", "sliding_window", "sparse"])
@pytest.mark.parametrize("packing", ["stream", "documents"])
def test_all_attentions_can_be_pretended(settings, attention, packing):
    found = training_memory(settings(f"model/attention={attention}", f"packing={packing}"), 257, FP32, 2)
    assert found.peak > found.weights + found.gradients + found.optimizer


def test_the_cache_by_its_formula(settings):
    found = cache_memory(settings(), 257, FP32)
    assert found.token == 2 * 1 * 16 * 4, "key and value of one head of 16"
    assert found.full == 32 * found.token
    recurrent = cache_memory(settings("model/attention=linear"), 257, FP32)
    assert recurrent.token == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what is resident")
def test_a_real_training_takes_what_was_found(settings):
    command = [sys.executable, str(HERE / "peak.py"), *settings.argv, *GROWN, "optimizer=adamw"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = training_memory(settings(*GROWN, "optimizer=adamw"), 257, FP32, 1)
    assert int(done.stdout.split()[-1]) == pytest.approx(found.resident, rel=0.5)
