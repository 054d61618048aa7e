"""Texts that a model writes while it trains."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from gpt.data.tokens import Prepared
from gpt.generation.settings import GenerationSettings
from gpt.generation.text import TextGeneration
from gpt.model.gpt import GPT
from gpt.run_folder import RunFolder
from gpt.training.horizon import Horizon
from gpt.training.logger import Loggers
from gpt.training.parallel import Spread

SAMPLE_TOKENS = 150
"""Length of the sample that is shown at the end."""

PROMPT = 20
"""Characters of the prompt that is proposed, at most."""

SHARE = 0.01
"""Of the time, that texts may take which no logger asks for."""


@dataclass
class Samples:
    """Keeps what the model writes, in the run's folder and by its loggers."""

    write: Callable[[GPT], str]
    """Writes one text."""
    run: RunFolder
    loggers: Loggers
    seconds: float = 0.0
    """What they took so far."""

    def take(self, step: int, last: bool, spread: Spread, horizon: Horizon) -> None:
        """One text after so many updates: the `last` time, for a logger that asks for it, or where it is cheap.

        The training does not end over it.
        """
        due = last or self.loggers.want_samples or self.seconds <= SHARE * horizon.elapsed
        begin = time.perf_counter()
        if spread.processes.told(due) and (model := spread.whole()):
            try:
                with horizon.aside("evaluating"):
                    text = self.write(model)
                self.run.keep_sample(step, text)
                self.loggers.sample(step, text)
            except Exception as error:
                warnings.warn(f"step {step:,}: no sample is written: {error}", stacklevel=2)
        self.seconds += time.perf_counter() - begin


def write_sample(model: GPT, data: Prepared) -> str:
    """A text by the model that begins as the training text does; where its documents are short, a whole one."""
    prompt = first_words(data)
    if not prompt and data.tokenizer.end_of_text is None:  # then a text can only go on
        prompt = data.tokenizer.decode(data.train.tokens[:8].tolist())
    (sample,) = TextGeneration(model, data.tokenizer, [prompt], GenerationSettings(max_new_tokens=SAMPLE_TOKENS)).run()
    return prompt + sample.text


def first_words(data: Prepared) -> str:
    """So much of the training text's first line as makes a prompt; '' where the first document is no longer."""
    ids = data.train.tokens[:64].tolist()
    end = data.tokenizer.end_of_text
    whole = end in ids
    text = data.tokenizer.decode(ids[: ids.index(end)] if whole else ids)
    if whole and len(text.strip()) <= PROMPT:
        return ""
    return opening(text)


def opening(text: str) -> str:
    """So much of a text's first line as makes a prompt.

    >>> opening(" Some men are born posthumously"), opening("")
    ('Some men are born', '')
    """
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= PROMPT else line[:PROMPT].rpartition(" ")[0] or line[:PROMPT]
