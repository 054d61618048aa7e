"""Train a GPT on text: `python train.py --help` lists what can be set."""

from functools import partial
from pathlib import Path

import torch

from gpt import cli
from gpt.config import ROOT
from gpt.data.batches import Batches
from gpt.device import describe_machine
from gpt.insight.report.report import leave_report
from gpt.processes import Processes, together
from gpt.runs import claim_folder
from gpt.training.evaluation import build_evaluator
from gpt.training.guard import Guard
from gpt.training.logger import Loggers, RunInfo
from gpt.training.memory import fitting
from gpt.training.origin import begin_run, shared_origin
from gpt.training.parallel import spread
from gpt.training.samples import Samples, write_sample
from gpt.training.settings import TrainSettings
from gpt.training.summary import conclude, summarize
from gpt.training.trainer import Trainer
from gpt.training.update import Update


@together
def train(settings: TrainSettings, run_dir: Path | None, processes: Processes) -> dict[str, str]:
    """Assemble the parts of a run, train, and tell what came of it."""
    origin = shared_origin(settings, run_dir, processes)
    precision = origin.precision(settings.precision, processes.device)
    settings.check_model(precision, processes.size)
    data = processes.in_turn(lambda: settings.prepare_data(ROOT / "data", origin.tokenizer, origin.check_fingerprint))
    torch.manual_seed(settings.seed)
    model = origin.load(settings.build_model(data.tokenizer.vocab_size), processes)
    parts = spread(model, processes, settings.parallel)
    batches = Batches(data.train, model.config.context, settings.batch_size, settings.seed)
    guard = Guard(settings.optimizer.build(model), settings.clip, precision.scaler(), settings.skip_spikes)
    update = Update(parts, guard, precision, settings.separator(data.tokenizer))
    accumulate = fitting(update, batches, settings.accumulate, origin.accumulate(precision))
    evaluate = build_evaluator(update, data, settings.batch_size // accumulate)
    horizon = origin.start(settings.horizon(), processes)
    mode, first = origin.compile(settings.compile, precision), parts.micro_batches(batches, 0, accumulate)
    cost = origin.restore(update).compile(mode, first, horizon)
    summary = origin.describe() + summarize(update, data, batches, horizon, cost)
    run = origin.run or begin_run(settings, run_dir, processes)
    run.start(settings.for_model(model.config), data, settings.keep, summary + describe_machine(precision.device))
    loggers = Loggers([logger.build() for logger in settings.logger.values()] if processes.leads else [])
    samples, schedule = Samples(partial(write_sample, data=data), run, loggers), settings.schedule.build()
    trainer = Trainer(update, batches, schedule, horizon, settings.rhythm(accumulate), evaluate, run, loggers, samples)
    with loggers.told(RunInfo(run, summary, horizon.done)):
        evaluation = trainer.fit()
    return conclude(run, evaluation, parts.whole(), data, leave_report)


if __name__ == "__main__":
    cli.main("train", TrainSettings, train, claim=claim_folder)
