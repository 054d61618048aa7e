"""Write text with a trained model: `python sample.py --help` lists what can be set."""

import sys
import time
from functools import partial
from pathlib import Path

from gpt import cli
from gpt.generation.settings import SampleSettings
from gpt.generation.text import TextGeneration
from gpt.run import load


def sample(settings: SampleSettings, _: Path | None) -> None:
    """Open a run's folder and let its model write; texts go to standard output, all else to standard error."""
    run = load(settings.run, settings.device, settings.precision, settings.compile, settings.quantize)
    run.decoding.announce = partial(print, file=sys.stderr)
    texts = run.texts(settings.texts(), settings)
    print(run.describe(), f"decoding: {run.decoding.told}", *texts.notices, sep="\n", file=sys.stderr)
    started = time.perf_counter()
    show(texts, settings.stream)
    seconds = time.perf_counter() - started
    tokens = sum(text.tokens for text in texts.samples)
    endings = ", ".join(dict.fromkeys(text.ending or "" for text in texts.samples))
    print(
        f"{tokens} tokens in {seconds:.1f} s, {tokens / seconds:,.0f} tokens/s; ended by {endings}",
        file=sys.stderr,
    )


def show(texts: TextGeneration, live: bool) -> None:
    """Print each prompt and its text. All are written side by side; the first is shown as it comes where `live`."""
    for number, text in enumerate(texts.samples, 1):
        if len(texts.samples) > 1:
            print(f"--- {number} of {len(texts.samples)} ---")
        print(text.prompt, end="", flush=True)
        if number == 1:
            for pieces in texts:
                print(pieces[0] if live else "", end="", flush=True)
        if number > 1 or not live:
            print(text.text, end="")
        print()


if __name__ == "__main__":
    cli.main("sample", SampleSettings, sample)
