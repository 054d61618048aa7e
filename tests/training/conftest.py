"""A small model, its update, and data to train on."""

import numpy as np
import pytest
import torch

from gpt.data.batches import Batches
from gpt.data.token_file import Counts, TokenFile
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokens import Prepared
from gpt.device import Precision
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.run_folder import RunFolder
from gpt.training import trainer
from gpt.training.evaluation import Evaluator
from gpt.training.guard import Guard
from gpt.training.horizon import Horizon
from gpt.training.logger import Logger, Loggers
from gpt.training.optimizer.adamw import AdamwConfig
from gpt.training.origin import Origin
from gpt.training.parallel import Spread
from gpt.training.samples import Samples
from gpt.training.schedule.linear import LinearConfig
from gpt.training.trainer import Rhythm, Trainer
from gpt.training.update import Update

CPU = torch.device("cpu")
TOKENIZER = ByteConfig().build(lambda: iter(()))
RHYTHM = Rhythm(accumulate=1, eval_every=5, save_every=7)


@pytest.fixture
def precision() -> Precision:
    return Precision("fp32", "as set", CPU)


@pytest.fixture
def build_update(precision):
    def build(seed: int = 0, clip: float = 1.0, lr: float = 1e-2, separator: int | None = None, **settings) -> Update:
        torch.manual_seed(seed)
        sizes = {"vocab_size": 11, "context": 8, "n_layer": 1, "n_head": 2, "d_model": 8}
        model = GPT(GPTConfig(**{**sizes, **settings}))
        guard = Guard(AdamwConfig(lr=lr).build(model), clip, torch.amp.GradScaler("cpu", enabled=False))
        return Update(Spread(model, Processes(CPU)), guard, precision, separator)

    return build


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 11, 400)


class Recorder(Logger):
    def __init__(self):
        self.seen = []

    def log(self, metrics, progress):
        self.seen.append((dict(metrics), progress))


@pytest.fixture
def peak(monkeypatch):
    """Of a device that does not matter."""
    monkeypatch.setattr(trainer, "peak_flops", lambda device, dtype: 1e9)


@pytest.fixture
def build_trainer(build_update, tokens, tmp_path, bytes_data, peak):
    def build(steps=20, rhythm=RHYTHM, evaluate=True, name="run", **settings):
        """With a run in the folder `name`; of one that has a checkpoint, the training goes on from there."""
        update = build_update(**settings)
        lengths = np.ones(11, dtype=np.int64)
        evaluator = Evaluator(update.model, tokens[:100], 4, lengths, update.precision) if evaluate else None
        (tmp_path / name).mkdir(exist_ok=True)
        run = RunFolder(tmp_path / name)
        run.start({"model": {}}, bytes_data, keep=1)
        origin = Origin(run, run.last and run.last.state, run.last and run.last.folder)
        horizon = origin.start(Horizon(steps), update.spread.processes)
        origin.load(update.model, update.spread.processes)
        batches, schedule = Batches(tokens, 8, 8, seed=0), LinearConfig(warmup=0.0).build()
        recorder = Recorder()
        loggers = Loggers([recorder])
        parts = (
            batches,
            schedule,
            horizon,
            rhythm,
            evaluator,
            run,
            loggers,
            Samples(lambda model: "a sample", run, loggers),
        )
        return Trainer(origin.restore(update), *parts), recorder

    return build


@pytest.fixture
def written(tmp_path):
    """Makes prepared tokens that are there: those of bytes, or ids as they are."""

    def write(text, tokenizer=TOKENIZER):
        (tmp_path / "train.bin").write_bytes(np.array(list(text), "<u2").tobytes())
        counts = Counts(tokens=len(text), documents=1, text_bytes=len(text))
        return Prepared("some texts", tokenizer, TokenFile(tmp_path / "train.bin", counts, 257), None, "f00d")

    return write
