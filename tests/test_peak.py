import pytest
import torch

from gpt import peak

CPU = torch.device("cpu")


@pytest.fixture
def measured(monkeypatch):
    """A device on which a product of size n takes (n / 1024)^3 times 3 ms, but small ones no less than 1 ms."""
    tried = []

    def product(device, dtype, size):
        tried.append(size)
        return 2 * size**3 / max(0.001, 0.003 * (size / 1024) ** 3)

    monkeypatch.setattr(peak, "matrix_product", product)
    peak.peak_flops.cache_clear()
    yield tried
    peak.peak_flops.cache_clear()


def test_larger_products_are_tried_until_one_takes_long(measured):
    """3 ms for 1024 and 24 ms for 2048: after that none."""
    assert peak.peak_flops(CPU, torch.float32) == pytest.approx(2 * 1024**3 / 0.003)
    assert measured == [512, 1024, 2048]


def test_it_is_measured_once(measured):
    assert peak.peak_flops(CPU, torch.float32) == peak.peak_flops(CPU, torch.float32)
    assert len(measured) == 3


def test_a_product_is_timed_and_draws_nothing_of_the_trainings():
    state = torch.random.get_rng_state()
    assert peak.matrix_product(CPU, torch.float32, 64) > 1e6
    assert torch.random.get_rng_state().equal(state)
