import pytest
import torch

from gpt.insight.bench.limits import (
    Limits,
    Sizes,
    decoding_ceiling,
    measure_limits,
    numbers_read,
    training_ceiling,
)
from gpt.model.gpt import GPT


def test_training_is_bounded_by_the_matrix_product(shape):
    model = GPT(shape("qwen3"))
    limits = Limits({"fp32": 10.0 * model.flops_per_token(), "bf16": 25.0 * model.flops_per_token()}, 1.0)
    assert training_ceiling(model, limits) == {"fp32": 10.0, "bf16": 25.0}


def test_a_step_reads_all_weights_but_looked_up_tables_and_the_keys_and_values_so_far(shape):
    """GPT-2: all 3,616 less the table of 8 positions; 3 rows that see 4, 5 and 6 tokens, 2 x 16 numbers each."""
    model = GPT(shape("gpt2"))
    weights = model.count_parameters() - 8 * 16
    assert numbers_read(model, rows=3, prompt=4, new=3) == weights + 3 * 5 * 2 * 16


def test_an_untied_embedding_is_only_looked_up_and_fewer_heads_are_read(shape):
    """Llama: the embedding of 11 x 16 is a table; one key/value head of 8."""
    model = GPT(shape("llama"))
    assert numbers_read(model, rows=1, prompt=4, new=1) == model.count_parameters() - 11 * 16 + 4 * 2 * 8


def test_decoding_is_bounded_by_the_bandwidth(shape):
    """As many bytes a second as a step of 2 rows needs in fp32: one step, so 2 tokens a second; in two bytes 4.

    Int8 reads a byte for each of the model's 3,488 weights that are read, and two for each of 320 keys and values.
    """
    model = GPT(shape("gpt2"))
    limits = Limits({"fp32": 1.0, "bf16": 1.0}, bandwidth=4 * numbers_read(model, 2, 4, 3))
    assert decoding_ceiling(model, 2, 4, 3, limits) == {
        "fp32": 2.0,
        "bf16": 4.0,
        "fp16": 4.0,
        "int8": 2.0 * 4 * (3488 + 320) / (3488 + 2 * 320),
    }


def test_of_two_measurements_the_best_counts():
    first, second = Limits({"fp32": 3.0, "bf16": 5.0}, 7.0), Limits({"fp32": 4.0, "bf16": 2.0}, 6.0)
    assert first.or_better(second) == Limits({"fp32": 4.0, "bf16": 5.0}, 7.0)


def test_they_are_measured_for_each_precision():
    limits = measure_limits(torch.device("cpu"), ["fp32", "bf16"], Sizes(matrix=64, array=1 << 16))
    assert list(limits.flops) == ["fp32", "bf16"]
    assert min(*limits.flops.values(), limits.bandwidth) > 1e6


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen3"])
def test_what_is_read_is_what_training_multiplies_with(kind, shape):
    """6 FLOPs for each weight that is read, besides attention's 12 · layers · width of the heads · context."""
    model = GPT(shape(kind))
    c = model.config
    attention = 12 * c.n_layer * c.n_head * c.head_size * c.context
    assert numbers_read(model, rows=0, prompt=1, new=1) * 6 == model.flops_per_token() - attention
