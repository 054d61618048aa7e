"""What a training takes in memory, measured: `python tests/insight/plan/peak.py OVERRIDES`, as train.py takes them.

The peak resident memory of a short run less that before its model is built, in bytes; Linux alone tells it. The tokens
must have been prepared before: what that takes would count.
"""

import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from gpt.cli import compose
from gpt.config import ROOT
from gpt.model.gpt import GPT
from gpt.training.settings import TrainSettings

UPDATES = 4
"""Of the run, two evaluations and checkpoints among them."""


def resident(field: str) -> int:
    """VmRSS, what is resident now, or VmHWM, what was at most (proc(5)); bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024


class Watched(TrainSettings):
    """Remembers what was resident before the model was built."""

    def build_model(self, vocabulary: int) -> GPT:
        """The last call builds the real one."""
        before.append(resident("VmRSS"))
        return super().build_model(vocabulary)


before: list[int] = []

if __name__ == "__main__":
    short = [f"steps={UPDATES}", f"eval_every={UPDATES // 2}", "save_every=1000", "compile=off", "logger=[]"]
    settings, _ = compose("train", [*sys.argv[1:], *short], Watched)
    train = runpy.run_path(str(ROOT / "train.py"))["train"]
    with TemporaryDirectory() as folder:
        train(settings, Path(folder) / "run")
    print(resident("VmHWM") - before[-1])
