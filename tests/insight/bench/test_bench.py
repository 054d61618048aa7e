"""The whole of it, on a model that is done in a moment."""

import re
import subprocess
import sys

import pytest
import torch

from gpt.device import choose_precision, has_native_bf16
from gpt.insight.bench import bench as module
from gpt.insight.bench.bench import bench, precisions_of, races, training_memory
from gpt.insight.bench.limits import Limits, Sizes, measure_limits
from gpt.insight.bench.race import Entry
from gpt.model.gpt import GPT

CPU = torch.device("cpu")
NATIVE = ["fp32", "bf16"] if has_native_bf16(CPU) else ["fp32"]
ROW = re.compile(r"^  (ours|transformers) +(fp32|bf16) +[\d,.]+ +[\d,.]+ - [\d,.]+ ", re.M)


@pytest.fixture
def small_machine(monkeypatch):
    """Its limits are measured by small work."""
    sizes = Sizes(matrix=32, array=1 << 12)
    monkeypatch.setattr(module, "measure_limits", lambda device, names: measure_limits(device, names, sizes))


def test_a_row_for_each_contender_under_its_race(bench_settings, small_machine, capsys):
    pytest.importorskip("transformers")
    bench(bench_settings("gpt2", decode_batch=[1, 3]), None)
    out = capsys.readouterr().out
    assert re.findall(r"^(training|decoding, batch \d)$", out, re.M) == [
        "training",
        "decoding, batch 1",
        "decoding, batch 3",
    ]
    assert ROW.findall(out) == [(who, name) for name in NATIVE for who in ("ours", "transformers")] * 3
    assert re.search(r"^transformers +5\.\S+, GPT2LMHeadModel, 3,\d\d\d parameters$", out, re.M)


def test_without_a_peer_only_ours(bench_settings, small_machine, capsys):
    bench(bench_settings(peers=[], precision="fp32"), None)
    out = capsys.readouterr().out
    assert ROW.findall(out) == [("ours", "fp32")] * 3
    assert not re.search("^transformers ", out, re.M)


def test_a_sweep_is_told_ours_in_its_fastest_form(bench_settings, small_machine):
    settings = bench_settings(peers=[], decode_batch=[2])
    told = bench(settings, None)
    assert list(told) == [
        "parameters",
        *(["memory MB"] if "memory MB" in told else []),
        "training",
        "decoding, batch 2",
    ]
    assert told["parameters"] == str(GPT(settings.shape).count_parameters())


def test_the_memory_of_an_update_is_that_of_its_optimizer_and_gradients_at_least(bench_settings, shape):
    """Of 2 million weights in fp32: two moments and a gradient are 24 MB."""
    settings = bench_settings(model=shape("llama", d_model=256, n_layer=4))
    model = GPT(settings.shape)
    memory = training_memory(model, settings, precisions_of(bench_settings(precision="fp32"), CPU)[0])
    assert memory is None or 12 * model.count_parameters() < memory < 40 * model.count_parameters()


def test_only_the_races_that_are_asked_for(bench_settings, small_machine, capsys, monkeypatch):
    bench(bench_settings(peers=[], precision="fp32", races=["decoding"], decode_batch=[2]), None)
    assert ROW.findall(capsys.readouterr().out) == [("ours", "fp32")]
    monkeypatch.setattr(module, "run_recipes", lambda settings, rules: iter(()))
    bench(bench_settings(races=["loss"]), None)
    out = capsys.readouterr().out
    assert ROW.findall(out) == []
    assert "1,536,000 tokens" in out


def test_a_shape_without_a_peer_is_said_and_ours_is_measured(bench_settings, shape, small_machine, capsys):
    model = shape("qwen3", feedforward={"name": "relu2"})
    bench(bench_settings(model=model, precision="fp32", decode_batch=[1]), None)
    out = capsys.readouterr().out
    assert re.search(r"^transformers +none: transformers has no model with .*relu2", out, re.M)
    assert ROW.findall(out) == [("ours", "fp32")] * 2


def test_precisions(bench_settings):
    assert [p.name for p in precisions_of(bench_settings(), CPU)] == NATIVE
    assert [p.name for p in precisions_of(bench_settings(precision="bf16"), CPU)] == ["bf16"]


def test_weights_are_decoded_in_the_precision_and_training_keeps_its_own(bench_settings):
    settings = bench_settings(peers=[])
    model = GPT(settings.shape)
    precisions = precisions_of(bench_settings(precision="bf16"), CPU)
    training, decoding, _ = races(model, [], precisions, settings)
    assert [contender.entry for contender in training.contenders] == [Entry("ours", "bf16")]
    assert decoding.contenders[0].work.model.embedding.weight.dtype == torch.bfloat16
    assert model.embedding.weight.dtype == torch.float32


def test_decoding_is_measured_in_int8_and_compiled_too(bench_settings, traced):
    settings = bench_settings(peers=[], compile="on")
    model = GPT(settings.shape).eval()
    contenders = list(module.decoding_contenders([(choose_precision("fp32", CPU), model)], [], settings, rows=2))
    assert [contender.entry.quantize for contender in contenders] == [None, "int8", None, "int8"]
    assert [contender.entry.compile_seconds is not None for contender in contenders] == [False, False, True, True]
    assert {contender.work() for contender in contenders} == {2 * 4}


def test_each_race_has_its_own_limit(bench_settings):
    """Training is bounded by the matrix product, decoding by the bandwidth: 3 rows write more than 1."""
    settings = bench_settings(peers=[], decode_batch=[1, 3])
    limits = Limits({"fp32": 1e6}, 1e6)
    model = GPT(settings.shape)
    ceilings = [race.ceiling(limits)["fp32"] for race in races(model, [], precisions_of(settings, CPU), settings)]
    assert ceilings[0] == 1e6 / model.flops_per_token()
    assert ceilings[1] < ceilings[2] < 3 * ceilings[1]


def test_the_peers_package_is_not_imported_for_nothing():
    code = (
        "import sys; from gpt.insight.bench import bench; from gpt.insight.bench.peer import litgpt, transformers; "
        "from gpt.insight.bench.peer import llama_cpp; sys.exit(bool({'transformers', 'litgpt', 'llama_cpp', 'gguf'} "
        "& sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
