"""Train, save, resume, open and sample on one device, for real: `python tests/device_smoke.py device=cuda`.

CI runs it on the CPU; on a machine with a GPU it is the first thing to run. It checks every precision that the device
has, compiled and not, packed and not, with cached decoding against the whole forward, and prints a line for each.
"""

import sys
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from gpt.config import UserError, variant_names
from gpt.data.batches import Batches
from gpt.data.dataset.builtin import BuiltinConfig
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokens import prepare
from gpt.device import Precision, choose_device, choose_precision, prepare_device
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.model.mask import Where
from gpt.processes import Processes
from gpt.run import load
from gpt.run_folder import RunFolder
from gpt.training.guard import Guard
from gpt.training.horizon import Horizon
from gpt.training.optimizer import optimizer_state
from gpt.training.optimizer.muon import MuonConfig
from gpt.training.origin import Origin
from gpt.training.parallel import Spread
from gpt.training.update import Update

STEPS = 40
CONTEXT = {"cpu": 64, "cuda": 256}
"""Tokens; on cuda several blocks of queries, so that FlexAttention computes windows and columns, compiled too."""
SPACE = ord(" ")
"""A separator of documents of which each window has many."""
TOLERANCE = {"fp32": 1e-3, "bf16": 5e-2, "fp16": 1e-2}
"""Of cached against uncached logits, relative to the largest; tf32 is on for cuda."""


def main() -> None:
    """Every precision, attention, and compilation off and on."""
    name = dict(argument.split("=") for argument in sys.argv[1:]).get("device", "auto")
    device = choose_device(name)
    prepare_device(device)
    with TemporaryDirectory() as temporary:
        for number, case in enumerate(cases(device)):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            print(smoke(folder, *case), flush=True)


def cases(device: torch.device) -> list[tuple[Precision, str, str, int | None]]:
    """What this device can do; compilation only where it is quick to try, on a GPU."""
    precisions = []
    for name in ("fp32", "bf16", "fp16"):
        with suppress(UserError):
            precisions.append(choose_precision(name, device))
    modes = ["off", "strict"] if device.type == "cuda" else ["off"]
    attentions = variant_names("gpt.model.attention")
    every = list(product(precisions, attentions, modes, (None, SPACE)))
    # a CPU's kernels for documents are the same in each precision, and CI has little time
    return [case for case in every if device.type == "cuda" or case[0].name == "fp32" or case[3] is None]


def smoke(folder: Path, precision: Precision, attention: str, compile_mode: str, separator: int | None) -> str:
    """One case; raises where something is wrong."""
    device = precision.device
    data = prepare(BuiltinConfig(years=[1790, 1800]).build(), ByteConfig(), folder / "data")
    sizes = {
        "vocab_size": 257,
        "context": CONTEXT.get(device.type, 64),
        "n_layer": 2,
        "n_head": 4,
        "n_kv_head": 2,
        "d_model": 128,
    }
    config = GPTConfig(**sizes, attention={"name": attention})
    torch.manual_seed(0)
    model, update = build(config, precision, separator)
    batches = Batches(data.train, config.context, 1024 // config.context, seed=0)
    cost = update.compile(compile_mode, [batches.batch(0)], Horizon(STEPS))
    start = time.perf_counter()
    losses = [update([batches.batch(step)])[0] for step in range(STEPS)]
    first, last = losses[0].item(), losses[-1].item()
    speed = STEPS * batches.tokens_per_step / (time.perf_counter() - start)
    assert last < first - 1, f"the loss went from {first} to {last}"
    assert update.guard.check().skipped <= 2, "fp16 may skip the first updates, while its scale is found"

    run = RunFolder(folder)
    run.start({"model": model.config.model_dump()}, data, keep=1)
    counts = {"step": STEPS, "tokens": 0, "elapsed": 0.0, "accumulate": 1, "validation_loss": None}
    saved = run.save(model.state_dict(), optimizer_state(model, update.guard.optimizer), {**counts, **update.state()})
    resumed, again = build(config, precision, separator)
    origin = Origin(run, saved.state, saved.folder)
    origin.load(resumed, again.spread.processes)
    origin.restore(again).compile(compile_mode, [batches.batch(0)], Horizon(STEPS))
    for step in range(STEPS, STEPS + 3):
        left, on = update([batches.batch(step)])[0].item(), again([batches.batch(step)])[0].item()
        limit = 0 if device.type == "cpu" else TOLERANCE[precision.name]
        assert abs(left - on) <= limit * left, f"update {step} has the loss {left}, after resuming {on}"

    opened = load(folder, str(device), precision.name)
    tokens = batches.batch(0)[0][:2].to(device)
    with torch.inference_mode():
        whole, cache = opened.model(tokens), opened.model.build_cache(config.context)
        position = torch.arange(-8, config.context - 8, device=device).clamp(min=-1).expand(2, -1)
        padded = Where(position, torch.zeros_like(tokens))
        assert opened.model(tokens, where=padded).isfinite().all(), "rows that see nothing must stay finite"
        cached = torch.cat([opened.model(tokens[:, t : t + 1], cache=cache) for t in range(config.context)], dim=1)
    difference = ((whole - cached).abs().max() / whole.abs().max()).item()
    assert difference < TOLERANCE[precision.name], f"cached logits differ by {difference}"
    text, _ = opened.generate(["The people", "A"], max_new_tokens=30)  # the second is padded
    assert len(text) > 10
    packing = "stream" if separator is None else "documents"
    return (
        f"{device} {precision.name} {attention} compile={cost.compiled} packing={packing}: "
        f"loss {first:.2f} -> {last:.2f}, {speed:,.0f} tokens/s, cached logits within {difference:.1e}, wrote {text!r}"
    )


def build(config: GPTConfig, precision: Precision, separator: int | None) -> tuple[GPT, Update]:
    """A new model, and Muon's and AdamW's updates of it."""
    model = GPT(config).to(precision.device)
    guard = Guard(MuonConfig().build(model), 1.0, precision.scaler())
    return model, Update(Spread(model, Processes(precision.device)), guard, precision, separator)


if __name__ == "__main__":
    main()
