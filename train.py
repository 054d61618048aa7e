"""Train a GPT on text: `python train.py --help` lists what can be set."""

from functools import partial
from pathlib import Path

import torch

from gpt import cli
from gpt.config import ROOT
from gpt.data.batches import Batches
from gpt.device import choose_device, prepare_device
from gpt.model.gpt import GPT
from gpt.run_folder import RunFolder, claim_folder
from gpt.training.evaluation import build_evaluator
from gpt.training.guard import Guard
from gpt.training.logger import Loggers, RunInfo
from gpt.training.origin import find_origin
from gpt.training.settings import TrainSettings
from gpt.training.summary import conclude, summarize, write_sample
from gpt.training.trainer import Rhythm, Trainer
from gpt.training.update import Update


def train(settings: TrainSettings, run_dir: Path | None) -> dict[str, str]:
    """Assemble the parts of a run, train, and tell what came of it."""
    origin = find_origin(settings, run_dir)
    device = choose_device(settings.device)
    precision = origin.precision(settings.precision, device)
    prepare_device(device)
    settings.check_model(precision)

    data = settings.prepare_data(ROOT / "data", origin.tokenizer, origin.check_fingerprint)
    torch.manual_seed(settings.seed)
    model = origin.load(GPT(settings.model.for_vocabulary(data.tokenizer.vocab_size)).to(device))
    batches = Batches(data.train, model.config.context, settings.batch_size, settings.seed)
    guard = Guard(settings.optimizer.build(model), settings.clip, precision.scaler())
    update = Update(model, guard, precision, settings.separator(data.tokenizer))
    rhythm = Rhythm(settings.accumulate, settings.eval_every, settings.save_every)
    evaluate = build_evaluator(update, data, settings.batch_size // settings.accumulate)

    horizon = origin.start(settings.horizon())
    mode, first = origin.compile(settings.compile, device), batches.micro_batches(0, settings.accumulate)
    cost = origin.restore(update).compile(mode, first, horizon)
    summary = origin.describe() + summarize(update, data, batches, horizon, cost)
    run = origin.run or RunFolder(claim_folder(run_dir, settings.name))
    run.start(settings.for_model(model.config), data, settings.keep)
    loggers = Loggers([logger.build() for logger in settings.logger.values()])
    write, schedule = partial(write_sample, model, data), settings.schedule.build()
    trainer = Trainer(update, batches, schedule, horizon, rhythm, evaluate, run, loggers, write)
    try:
        loggers.start(RunInfo(run, summary, horizon.done))
        evaluation = trainer.fit()
    finally:
        loggers.finish()
    return conclude(run, evaluation, model, data)


if __name__ == "__main__":
    cli.main("train", TrainSettings, train, claim=claim_folder)
