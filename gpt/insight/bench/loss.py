"""The race to a loss: whole recipes, each trained by train.py in a process of its own, as a person would type it.

    R = 1,536,000 tokens / (1.3 · tokens/s of transformers, eager, fp32)    of GPT-2 with 4 layers of 128, 4 heads

That many tokens are the 2,000 updates of 12 x 64 that `nanogpt_cpu` makes. The speed of transformers is measured before
and after each training. The time of a training is that of its loop, without evaluations, probing and compilation, which
are told apart; compilation finds an empty cache, and is then tried again with the cache that it left.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from gpt import checkpoint
from gpt.checkpoint import State
from gpt.config import ROOT, RunError, UserError
from gpt.contention import foreign_share, read
from gpt.device import choose_precision
from gpt.insight.bench.peer import NoPeerError
from gpt.insight.bench.peer.transformers import build
from gpt.insight.bench.race import Rules, undisturbed
from gpt.insight.bench.settings import BenchSettings
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.training.optimizer.adamw import AdamwConfig

TOKENS, FASTER, ROWS = 1_536_000, 1.3, 12
"""Of R: what is trained on; how much faster than transformers; sequences of an update."""


class Finish(NamedTuple):
    """Where a recipe came to."""

    recipe: str
    state: State
    """At its end."""
    cached: float | None
    """Seconds of compiling with a filled cache; None where nothing was compiled."""
    bar: float | None
    """R in seconds; None without transformers."""
    others: float | None
    """The share of the processor that others used meanwhile."""


def run_recipes(settings: BenchSettings, rules: Rules) -> Iterator[Finish]:
    """Train one recipe after the other.

    Raises:
        UserError: train.py refused a recipe with these overrides.
        RunError: it failed.
    """
    reference = reference_speed(settings, rules)
    before = reference()
    for recipe in settings.recipes:
        typed = [f"experiment={recipe}", f"device={settings.device}", *shlex.split(settings.overrides)]
        start = read()
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            state = train(typed, Path(folder), "whole")
            others = foreign_share(start, read(), os.cpu_count() or 1)
            again = train([*typed, "steps=1"], Path(folder), "again") if state.compiled else None
        after = reference()
        bar = TOKENS / (FASTER * mean((before, after))) if before and after else None
        yield Finish(recipe, state, again.asides["compiling"] if again else None, bar, others)
        before = after


def train(typed: list[str], folder: Path, name: str) -> State:
    """Where train.py came to with these arguments, its run in `folder`, beside the cache of compiled code.

    Raises:
        UserError: it refused them.
        RunError: it failed.
    """
    print(f"training: python train.py {shlex.join(typed)}", file=sys.stderr, flush=True)
    run = folder / name
    command = [sys.executable, str(ROOT / "train.py"), *typed, "logger=[]", f"hydra.run.dir={run}"]
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")}
    done = subprocess.run(command, env=os.environ | cache, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        last = (done.stderr.strip() or "no word").splitlines()[-1].removeprefix("error: ")
        raise (UserError if done.returncode == 2 else RunError)(f"train.py {shlex.join(typed)}: {last}")
    sys.stderr.write(done.stderr)  # its warnings
    return checkpoint.find(run / "checkpoints")[-1].state


def reference_speed(settings: BenchSettings, rules: Rules) -> Callable[[], float | None]:
    """What measures transformers, in tokens/s; it gives None where there is no transformers, which a sentence tells."""
    shape = reference_shape()
    optimizer = AdamwConfig()
    own = {"model": shape, "batch_size": ROWS, "accumulate": 1, "clip": 1.0, "optimizer": optimizer}
    try:
        side = build(GPT(shape).to(rules.device)).training(settings.model_copy(update=own))
    except NoPeerError as error:
        print(f"no R: {error}", file=sys.stderr)
        return lambda: None
    assert side is not None, "transformers trains"
    contender = side.eager(choose_precision("fp32", rules.device))
    contender.work()  # the first update is slower than all that follow
    return lambda: median(undisturbed(contender, rules, read)[0] for _ in range(rules.repeats))


def reference_shape() -> GPTConfig:
    """Of the model that transformers is measured with: nanoGPT's for a CPU."""
    return GPTConfig.model_validate(
        {
            "vocab_size": 65, "context": 64, "n_layer": 4, "n_head": 4, "d_model": 128, "norm": "layernorm",
            "qk_norm": False, "bias": True, "position": {"name": "learned"}, "feedforward": {"name": "gelu"},
        }
    )  # fmt: skip
