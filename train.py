"""Train a GPT on text: `python train.py --help` lists what can be set."""

from pathlib import Path

import torch

from gpt import cli
from gpt.config import ROOT
from gpt.data.batches import Batches
from gpt.device import check_memory, choose_device, choose_precision, prepare_device
from gpt.model.gpt import GPT
from gpt.run import RunFolder, claim_folder, refuse_taken
from gpt.training.evaluation import Evaluator
from gpt.training.guard import Guard
from gpt.training.horizon import Horizon
from gpt.training.logger import Loggers, RunInfo
from gpt.training.settings import TrainSettings
from gpt.training.summary import conclude, summarize
from gpt.training.trainer import Rhythm, Trainer
from gpt.training.update import Update


def train(settings: TrainSettings, run_dir: Path | None) -> None:
    """Assemble the parts of a run, train, and tell what came of it."""
    if run_dir:
        refuse_taken(run_dir)
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    prepare_device(device)
    with torch.device("meta"):
        check_memory(GPT(settings.model.for_vocabulary(1)), device)  # also refuses parts that do not go together

    data = settings.prepare_data(ROOT / "data")
    torch.manual_seed(settings.seed)
    model = GPT(settings.model.for_vocabulary(data.tokenizer.vocab_size)).to(device)
    batches = Batches(data.train, model.config.context, settings.batch_size, settings.seed)
    scaler = torch.amp.GradScaler(device.type, enabled=precision.name == "fp16")
    update = Update(model, Guard(settings.optimizer.build(model), settings.clip, scaler), precision)
    rhythm = Rhythm(settings.accumulate, settings.eval_every, settings.save_every)
    rows, lengths = settings.batch_size // settings.accumulate, data.tokenizer.byte_lengths()
    evaluate = Evaluator(model, data.validation, rows, lengths, precision) if data.validation is not None else None

    horizon = Horizon(settings.steps, settings.budget_seconds)
    horizon.start()
    cost = update.compile(settings.compile, batches.micro_batches(0, settings.accumulate), horizon)
    run = RunFolder(claim_folder(run_dir, settings.name), settings.for_model(model.config), data.tokenizer)
    loggers = Loggers([logger.build() for logger in settings.logger.values()])
    loggers.start(RunInfo(run, summarize(model, data, batches, horizon, precision, cost)))
    trainer = Trainer(update, batches, settings.schedule.build(), horizon, rhythm, evaluate, run, loggers)
    try:
        evaluation = trainer.fit()
    finally:
        loggers.finish()
    conclude(run, evaluation, model, data)


if __name__ == "__main__":
    cli.main("train", TrainSettings, train)
