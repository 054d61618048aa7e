"""The terminal: what the run will do, a live bar with loss, tokens/s and time left, validation losses as they fall.

Where the output is no terminal, plain lines with the time left replace the bar: one for each twentieth of the training.
"""

from typing import Literal

from rich.console import Console as Terminal
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gpt.files import nearby
from gpt.training.logger import Logger, LoggerConfig, Metrics, RunInfo
from gpt.training.summary import duration

LINES = 20
"""Plain lines over a training."""

WINDOW = 300.0
"""Seconds of which the speed tells how long it still takes, evaluations among them; of large models a few updates."""


class ConsoleConfig(LoggerConfig):
    """A live bar, or plain lines."""

    name: Literal["console"] = "console"

    def build(self) -> Logger:
        """Writes to standard output."""
        return Console(Pipeable(highlight=False))


class Pipeable(Terminal):
    """A terminal whose reader may go away, as `| head` does: rich would end the program, and the training with it."""

    def on_broken_pipe(self) -> None:
        """Let the error through: the logger is dropped, and the training goes on."""
        raise


class Console(Logger):
    """Shows a run to the person who started it."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.live = terminal.is_terminal and not terminal.is_dumb_terminal
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=terminal,
            disable=not self.live,
            speed_estimate_period=WINDOW,
        )
        self.lines_shown = 0

    def start(self, info: RunInfo) -> None:
        """The summary, as a table that wraps where there is a width to wrap at; then the bar at 0."""
        told = [("run", nearby(info.run.folder)), *info.summary]
        if self.live:
            table = Table.grid(padding=(0, 2))
            for label, text in told:
                table.add_row(Text(label, "bold"), Text(text))
            self.terminal.print(table)
        else:
            for label, text in told:
                self.terminal.print(f"{label:<10}{text}", soft_wrap=True, markup=False)
        self.resumed = info.resumed_at > 0
        self.task = self.bar.add_task("training", total=1.0, status="")
        self.bar.start()

    def log(self, metrics: Metrics, progress: float) -> None:
        """A validation loss stays as a line; what else there is moves the bar."""
        step = f"step {metrics['step']:.0f}"
        if "validation_loss" in metrics:
            self.terminal.print(
                f"{step}: validation loss {metrics['validation_loss']:.4f} "
                f"({metrics['validation_bits_per_byte']:.4f} bits per byte)"
            )
            return
        speed = f"{metrics['tokens_per_second']:,.0f} tokens/s ({metrics['mfu']:.0%} of peak)"
        status = f"{step}  loss {metrics['loss']:.3f}  {speed}"
        if self.resumed:  # what was done before says nothing of how fast the rest goes
            self.bar.reset(self.task, completed=progress)  # type: ignore[arg-type]  # it takes any number
            self.resumed = False
        self.bar.update(self.task, completed=progress, status=status)
        if not self.live and progress * LINES >= self.lines_shown:
            self.lines_shown = int(progress * LINES) + 1
            self.terminal.print(f"{status}  {progress:.0%}{self.left()}")

    def left(self) -> str:
        """How long it still takes, once that is known."""
        seconds = self.bar.tasks[self.task].time_remaining
        return f"  about {duration(seconds)} left" if seconds else ""

    def finish(self) -> None:
        """Leaves the last state of the bar on the screen."""
        self.bar.stop()
