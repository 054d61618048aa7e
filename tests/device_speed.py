"""How near to the limits of a device training and decoding come: `python tests/device_speed.py`.

With device=cuda, GPT-2 of 124 million parameters in bf16, compiled, beside transformers, whose cache is static and
compiled there: training must come to half of the best matrix product, and decoding one text to twice the peer's speed.
CI runs it on the CPU with a model of one layer, eager, where nothing is asked of the speed.
"""

import sys

import torch

from gpt.device import choose_device, choose_precision, prepare_device
from gpt.insight.bench import page
from gpt.insight.bench.bench import peers_of, raced
from gpt.insight.bench.limits import Limits
from gpt.insight.bench.race import Outcome, Rules
from gpt.insight.bench.settings import BenchSettings
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.optimizer.adamw import AdamwConfig

GPT2 = {
    "position": {"name": "learned"},
    "feedforward": {"name": "gelu"},
    "norm": "layernorm",
    "norm_eps": 1e-5,
    "qk_norm": False,
    "bias": True,
}
SIZES = {
    "cuda": {"vocab_size": 50304, "context": 1024, "n_layer": 12, "n_head": 12, "d_model": 768},
    "cpu": {"vocab_size": 300, "context": 32, "n_layer": 1, "n_head": 2, "d_model": 32},
}
BATCH = {"cuda": 16, "cpu": 2}
SECONDS = {"cuda": 3.0, "cpu": 0.05}

SHARE, RATIO = 0.5, 2.0
"""Of the best matrix product in training, and of the peer's tokens/s in decoding: what cuda must come to."""


def main() -> None:
    """Both races; code 1 where a bar is missed."""
    device = choose_device(dict(argument.split("=") for argument in sys.argv[1:]).get("device", "auto"))
    prepare_device(device)
    torch.manual_seed(0)
    settings = settings_for(device.type)
    rules = Rules(settings.repeats, settings.seconds, settings.redos, device)
    model = GPT(settings.shape).to(device)
    peers, told = peers_of(model, settings)
    page.show_facts([*page.facts(model, settings, device), *told])
    precision = choose_precision("bf16", device)
    outcomes, limits = raced(model, peers, [precision], settings, rules)
    page.show_outcomes(outcomes, limits)
    reached = share(outcomes[0], limits), ratio(outcomes[1])
    print(f"training: {reached[0]:.0%} of the matrix product; decoding: {reached[1]:.2f} times the peer")
    sys.exit(device.type == "cuda" and (reached[0] < SHARE or reached[1] < RATIO))


def settings_for(kind: str) -> BenchSettings:
    """What is measured on a kind of device."""
    kind = kind if kind in SIZES else "cpu"
    return BenchSettings(
        compile="on" if kind == "cuda" else "off",
        batch_size=BATCH[kind],
        decode_batch=[1],
        repeats=3 if kind == "cuda" else 1,
        seconds=SECONDS[kind],
        redos=0,
        model=GPTConfig(**SIZES[kind], **GPT2),
        optimizer=AdamwConfig(),
    )


def share(outcome: Outcome, limits: Limits) -> float:
    """The fastest of ours, as a share of what the device can do."""
    return max(speeds(outcome, ours=True)) / outcome.ceiling(limits)["bf16"]


def ratio(outcome: Outcome) -> float:
    """The fastest of ours, in times the fastest of the peer's."""
    return max(speeds(outcome, ours=True)) / max(speeds(outcome, ours=False), default=float("nan"))


def speeds(outcome: Outcome, ours: bool) -> list[float]:
    """Tokens per second of ours, or of the peer."""
    return [standing.speed for standing in outcome.standings if page.is_peer(standing.entry.name) != ours]


if __name__ == "__main__":
    main()
