"""TensorBoard: a run's curves, configuration and samples as event files in the run's folder, in `tensorboard`.

    tensorboard --logdir runs

What was logged after the checkpoint that a resumed run goes on from is hidden.
"""

from importlib.util import find_spec
from typing import Literal, Self

import yaml
from pydantic import model_validator

from gpt.config import UserError
from gpt.training.logger import Logger, LoggerConfig, Metrics, RunInfo, grouped

FLUSH = 10
"""Seconds after which what was logged is on disk."""


class TensorboardConfig(LoggerConfig):
    """Curves, configuration and samples for TensorBoard."""

    name: Literal["tensorboard"] = "tensorboard"

    @model_validator(mode="after")
    def _is_installed(self) -> Self:
        if find_spec("tensorboard") is None:
            raise UserError(
                "logger.tensorboard: tensorboard is not installed; pip install tensorboard, or leave it out"
            )
        return self

    def build(self) -> Logger:
        """Does nothing before it is started."""
        return Tensorboard()


class Tensorboard(Logger):
    """Event files."""

    def start(self, info: RunInfo) -> None:
        """Begin a file; the configuration is its first text."""
        from torch.utils.tensorboard import SummaryWriter  # takes a second, of every run

        void = info.resumed_at + 1
        self.writer = SummaryWriter(info.run.folder / "tensorboard", purge_step=void, flush_secs=FLUSH)
        settings = yaml.safe_dump(dict(info.run.settings), sort_keys=False, allow_unicode=True)
        self.writer.add_text("config", literal(settings), info.resumed_at)

    def log(self, metrics: Metrics, progress: float) -> None:
        """As train/loss, validation/loss and so on, at their step."""
        step = int(metrics["step"])
        for name, value in grouped(metrics).items():
            if name != "step":
                self.writer.add_scalar(name, value, step)

    def sample(self, step: int, text: str) -> None:
        """A text at its step."""
        self.writer.add_text("samples", literal(text), step)

    def finish(self) -> None:
        """Close the file."""
        self.writer.close()


def literal(text: str) -> str:
    r"""Markdown that shows `text` as it is.

    >>> literal("# one\n\ntwo")
    '    # one\n    \n    two'
    """
    return "\n".join(f"    {line}" for line in text.split("\n"))
