import re

import torch
from rich.console import Console

from gpt.insight import terminal
from gpt.insight.bench.limits import Limits
from gpt.insight.bench.page import columns_of_sweep, facts, peers_in, rows, show_outcomes, table
from gpt.insight.bench.race import Entry, Outcome, Standing
from gpt.model.gpt import GPT

LIMITS = Limits({"fp32": 1000.0, "bf16": 4000.0}, 1e9)


def ceiling(limits: Limits) -> dict[str, float]:
    """Ten FLOPs a token."""
    return {name: flops / 10 for name, flops in limits.flops.items()}


def outcome(title: str = "training") -> Outcome:
    standings = [
        Standing(Entry("ours", "fp32"), [60.0, 50.0, 10.0]),
        Standing(Entry("transformers", "fp32"), [30.0, 25.0, 20.0]),
        Standing(Entry("ours", "bf16"), [80.0, 85.0, 90.0], disturbed=2),
        Standing(Entry("transformers", "bf16"), [20.0, 20.0, 20.0]),
        Standing(Entry("ours", "bf16", 23.4), [20_000.0, 20_000.0, 21_000.0]),
        Standing(Entry("transformers", "bf16", 31.0), [1000.0, 1000.0, 1000.0]),
    ]
    return Outcome(title, standings, ceiling)


def test_ratios_and_shares_are_of_medians():
    """The peer's fastest is eager fp32, 25; its compiled form is a row, and no yardstick."""
    assert list(rows(outcome(), LIMITS, ["transformers"])) == [
        ["ours", "fp32", "50.0", "10.0 - 60.0", "2.00", "2.00", "50%", ""],
        ["transformers", "fp32", "25.0", "20.0 - 30.0", "1.00", "1.00", "25%", ""],
        ["ours", "bf16", "85.0", "80.0 - 90.0", "4.25", "3.40", "21%", "2 of 3"],
        ["transformers", "bf16", "20.0", "20.0 - 20.0", "1.00", "0.80", "5%", ""],
        ["ours, compiled in 23 s", "bf16", "20,000", "20,000 - 21,000", "1000.00", "800.00", "5000%", ""],
        ["transformers, compiled in 31 s", "bf16", "1,000", "1,000 - 1,000", "50.00", "40.00", "250%", ""],
    ]


def test_each_peer_is_a_yardstick_for_numbers_of_its_size():
    """llama.cpp has fp16 where ours has bf16."""
    standings = [
        Standing(Entry("ours", "bf16"), [80.0]),
        Standing(Entry("transformers", "bf16"), [40.0]),
        Standing(Entry("llama_cpp", "fp16"), [160.0]),
        Standing(Entry("llama_cpp", "fp32"), [320.0]),
    ]
    several = [Outcome("decoding", standings, lambda limits: dict.fromkeys(("fp32", "bf16", "fp16"), 400.0))]
    assert peers_in(several) == ["transformers", "llama_cpp"]
    ours, *_, theirs = rows(several[0], LIMITS, peers_in(several))
    assert ours == ["ours", "bf16", "80.0", "80.0 - 80.0", "2.00", "0.50", "0.25", "20%", ""]
    assert theirs[4:7] == ["", "1.00", "1.00"]


def test_a_sweep_tells_of_ours_at_its_fastest(shape):
    """20,000 tokens/s, compiled."""
    model = GPT(shape("gpt2"))
    told = columns_of_sweep(model, 12_345_678, [outcome("training")])
    assert told == {"parameters": "3616", "memory MB": "12", "training": "20000"}
    assert columns_of_sweep(model, None, []) == {"parameters": "3616"}


def test_without_a_peer_there_is_no_ratio():
    alone = Outcome("training", [Standing(Entry("ours", "fp32"), [50.0])], ceiling)
    assert list(rows(alone, LIMITS, [])) == [["ours", "fp32", "50.0", "50.0 - 50.0", "", "50%", ""]]


def test_nothing_is_cut_off_where_the_output_is_no_terminal(capsys):
    show_outcomes([outcome("training"), outcome("decoding, batch 8")], LIMITS)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= terminal.WIDTH
    assert printed.count("transformers, compiled in 31 s") == 2
    assert re.search(r"^training\n  ours +fp32 +50\.0 +10\.0 - 60\.0 +2\.00 +2\.00 +50%$", printed, re.M)
    assert "matrix product 0 GFLOP/s in fp32, 0 GFLOP/s in bf16; memory 1.0 GB/s" in printed


def test_numbers_are_whole_in_a_narrow_terminal():
    console = Console(width=80, highlight=False)
    with console.capture() as captured:
        console.print(table([outcome()], LIMITS))
    assert "20,000 - 21,000" in captured.get()
    assert "…" not in captured.get()


def test_the_facts_name_shape_machine_and_rules(bench_settings):
    settings = bench_settings("gpt2", accumulate=2, repeats=7)
    told = dict(facts(GPT(settings.shape), settings, torch.device("cpu")))
    assert "1 layers of 16, 2 query heads over 2 key/value, context 8, vocabulary 11" in told["model"]
    assert told["training"] == "updates of 2 x 8 tokens in 2 parts, clipped at 1, adamw"
    assert told["decoding"] == "4 tokens after 4, greedy, with a cache"
    assert "7 times" in told["measured"]
    assert f", threads: {torch.get_num_threads()};" in told["torch"]
    assert torch.__version__ in told["torch"]
    assert "cores" in told["machine"]
