"""Where a training begins: anew, from other weights (`init`), or where it was left (`resume`).

What `auto` decided in a resumed run is not decided again while the kind of device stays the same, so that on the CPU
the weights go on bit for bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from gpt import checkpoint
from gpt.checkpoint import OPTIMIZER, WAY_OUT, WEIGHTS, Checkpoint, State
from gpt.config import UserError
from gpt.data.tokenizer import Tokenizer, with_unknown
from gpt.device import CompileMode, Precision, PrecisionName, choose_precision
from gpt.files import nearby
from gpt.interop.foreign import Foreign
from gpt.interop.opening import opened
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.run import choose_checkpoint
from gpt.run_folder import Elsewhere, RunFolder
from gpt.runs import claim_folder, refuse_unusable
from gpt.training.continuation import told_as
from gpt.training.freezing import frozen
from gpt.training.growth import Shapes, changes, fitted, refuse_untrained, shapes_of
from gpt.training.horizon import Horizon
from gpt.training.optimizer import load_optimizer_state
from gpt.training.settings import TrainSettings
from gpt.training.update import Update
from gpt.weights import check_optimizer, check_tokenizer, load_optimizer, load_weights, stored_shapes


@dataclass
class Origin:
    """Where a training begins."""

    run: RunFolder | None = None
    """The run that is resumed, which this process now holds."""
    state: State | None = None
    """Where it stood; None for a training that begins at its first update."""
    weights: Path | None = None
    """The checkpoint that weights are from; None for a new model, and where another program wrote them."""
    foreign: Foreign | None = None
    """The model of another program that weights are from."""
    changed: Sequence[str] = ()
    """What becomes of the rows of its tables, in words."""
    tokenizer: Tokenizer | None = None
    """The one that the weights of another run were trained with; None: built as the settings say."""

    def precision(self, name: PrecisionName, device: torch.device) -> Precision:
        """As `choose_precision`; `auto` stays what it was."""
        if name == "auto" and self.state and self.state.device == device.type:
            return choose_precision(self.state.precision, device)._replace(reason="as it was when the run was left")
        return choose_precision(name, device)

    def compile(self, mode: CompileMode, precision: Precision) -> CompileMode:
        """`mode`; where that decided or failed to compile before on such a device, it stays so."""
        if mode == "strict" or not self.state or self.state.device != precision.device.type:
            return mode
        return "on" if self.state.compiled else "off"

    def accumulate(self, precision: Precision) -> int | None:
        """The micro-steps that an update had on such a device; None: this is not known."""
        return self.state.accumulate if self.state and self.state.device == precision.device.type else None

    def check_fingerprint(self, fingerprint: str) -> None:
        """Refuse data that the training was not left with, by what it is found by.

        Raises:
            UserError: the text has changed since.
        """
        if self.state and self.state.data != fingerprint:
            raise UserError(
                "resume: the text, or what it is tokenized with, has changed since this run was left; put it back, or "
                "start a new run from its weights with init="
            )

    def start(self, horizon: Horizon, processes: Processes) -> Horizon:
        """Let the time run, from where it stood."""
        done, elapsed = (self.state.step, self.state.elapsed) if self.state else (0, 0.0)
        asides = {str(what): seconds for what, seconds in self.state.asides.items()} if self.state else None
        horizon.start(done, elapsed, lambda seconds: processes.largest(seconds)[0], asides)
        return horizon

    def load(self, model: GPT, processes: Processes) -> GPT:
        """Give rank 0's model the weights that it begins with; the others get them when it is spread."""
        if (self.weights or self.foreign) and processes.leads:
            with told_as("resume" if self.state else "init"):
                model.load_state_dict(fitted(self._read(), model))
        return model

    def _read(self) -> dict[str, Tensor]:
        if self.foreign:
            return self.foreign.weights()
        return load_weights(self.weights, torch.device("cpu")) if self.weights else {}

    def restore(self, update: Update) -> Update:
        """Give optimizer and guard the state that they go on from."""
        if self.state and self.weights:
            read, processes = partial(load_optimizer, self.weights), update.spread.processes
            load_optimizer_state(update.model, update.guard.optimizer, read, processes)
            s = self.state
            update.guard.restore(s.skipped, s.skipped_in_a_row, s.spikes, s.losses, s.scaler)
        return update

    def describe(self) -> list[tuple[str, str]]:
        """What a person is told of it, as label and text."""
        if self.run:
            where = nearby(self.run.folder)
            at = f"after step {self.state.step:,}" if self.state else "from the start: it has no checkpoint yet"
            on = f", trained on {self.state.device} in {self.state.precision} so far" if self.state else ""
            return [("resumed", f"{where} {at}{on}")]
        if not (self.weights or self.foreign):
            return []
        whose = self.foreign.name if self.foreign else nearby(self.weights or Path())
        return [("begins", "; ".join([f"with the weights of {whose}", *self.changed]))]


def shared_origin(settings: TrainSettings, run_dir: Path | None, processes: Processes) -> Origin:
    """As `find_origin` in rank 0, which alone has files to read; the others are told, and get no weights and no run."""
    found: list[Origin] = []

    def find() -> Origin:
        found.append(find_origin(settings, run_dir))
        elsewhere = Elsewhere(found[0].run.folder) if found[0].run else None
        return replace(found[0], run=elsewhere, foreign=None)

    told = processes.led(find)
    return found[0] if processes.leads else told


def begin_run(settings: TrainSettings, run_dir: Path | None, processes: Processes) -> RunFolder:
    """The folder of a new run, claimed by rank 0.

    Raises:
        UserError: as of `claim_folder`.
    """
    folder = processes.led(lambda: claim_folder(run_dir, settings.name))
    return RunFolder(folder) if processes.leads else Elsewhere(folder)


def find_origin(settings: TrainSettings, run_dir: Path | None) -> Origin:
    """Where a training with such settings begins; what it begins from is verified.

    Args:
        settings: of the run.
        run_dir: the folder that a new run shall have, where one is named.

    Raises:
        UserError: the folder is taken or cannot be made; the run to begin from is at its end, is trained by another
            process, is damaged, or has weights that do not fit.
    """
    if not settings.resume:
        refuse_unusable(run_dir)
        return _from_another(settings) if settings.init else Origin()
    with told_as("resume"):
        run = RunFolder(Path(settings.resume))
    if not run.last:
        return replace(_from_another(settings) if settings.init else Origin(), run=run)
    refuse_finished(run.last, settings)
    with told_as("resume"):
        checkpoint.verify(run.last.folder)
        check_optimizer(run.last.folder)
        tokenizer, changed = _fitting(run.last.folder, settings)
        if changed:
            raise UserError(f"run: {run.last.folder}: {changed[0]} by the run's settings; {WAY_OUT}")
        return Origin(run, run.last.state, run.last.folder, tokenizer=tokenizer if settings.init else None)


def refuse_finished(point: Checkpoint, settings: TrainSettings) -> None:
    """A run that is at its end needs a later one.

    Raises:
        UserError: it is.
    """
    if settings.horizon().is_over(point.state.step, point.state.elapsed):
        end = f"budget={settings.budget}" if settings.budget else f"steps={settings.steps}"
        raise UserError(
            f"resume: this run has done {point.state.step:,} updates and is at its end, {end}; to train on, give more "
            f"{end.partition('=')[0]}"
        )


def _from_another(settings: TrainSettings) -> Origin:
    """From the weights that `init` names."""
    with told_as("init"):
        if foreign := opened(settings.init or ""):
            tokenizer = _as_set(foreign.tokenizer(), settings)
            changed = _changes(shapes_of(foreign.config), tokenizer, settings, foreign.folder)
            return Origin(foreign=foreign, tokenizer=tokenizer, changed=changed)
        point, _ = choose_checkpoint(Path(settings.init or ""))
        checkpoint.verify(point.folder, without=OPTIMIZER)
        tokenizer, changed = _fitting(point.folder, settings)
        return Origin(weights=point.folder, tokenizer=tokenizer, changed=changed)


def _fitting(folder: Path, settings: TrainSettings) -> tuple[Tokenizer, list[str]]:
    """A checkpoint's tokenizer, and what becomes of the rows of its tables.

    Raises:
        UserError: it does not fit the checkpoint's weights, or these do not fit the settings.
    """
    tokenizer = checkpoint.load_tokenizer(folder)
    check_tokenizer(folder, tokenizer)
    return _as_set(tokenizer, settings), _changes(stored_shapes(folder), tokenizer, settings, folder / WEIGHTS)


def _changes(found: Shapes, tokenizer: Tokenizer, settings: TrainSettings, path: Path) -> list[str]:
    """What becomes of the rows of the tables that weights of these shapes have.

    Raises:
        UserError: they do not fit the settings.
    """
    wanted = shapes_of(settings.model.for_vocabulary(tokenizer.vocab_size))
    told = changes(found, wanted, path)
    refuse_untrained(found, wanted, frozen(wanted, settings.freeze, settings.model.tied))
    return told


def _as_set(tokenizer: Tokenizer, settings: TrainSettings) -> Tokenizer:
    """The same that does with unknown characters as is set now."""
    unknown = getattr(settings.tokenizer, "unknown", None)
    return with_unknown(tokenizer, unknown) if unknown else tokenizer
