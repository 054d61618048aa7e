"""Look at a text before training on it: `python data/prepare.py --help` lists what can be set."""

import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where train.py stands, which finds the package so

from rich.console import Console

from gpt import cli
from gpt.config import ROOT
from gpt.data.tokens import prepare
from gpt.files import nearby
from gpt.insight.data.look import look
from gpt.insight.data.page import page
from gpt.training.origin import find_origin
from gpt.training.settings import TrainSettings

PLAIN_WIDTH = 100
"""Columns where the output is no terminal."""

ASCII = str.maketrans({"█": "#", "│": "|", "·": "_", "↵": "$", "←": "^", "⇥": ">", "□": "_", "…": "..."})
"""What a terminal that has only ASCII shows instead."""


class PrepareSettings(TrainSettings):
    """Look at a text before training on it: how much of it there is, what is in it, how often training will show it.

    Takes what train.py takes. The tokens are made and kept under data/, where train.py finds them again.

    Examples:
        python data/prepare.py
        python data/prepare.py dataset=text dataset.path=notes.txt tokenizer=char
        python data/prepare.py model=baby steps=5000 batch_size=32
    """


def show(settings: TrainSettings, _: Path | None) -> None:
    """Prepare the tokens, read the text, and print what came of it."""
    dataset = settings.dataset.build()
    tokenizer = find_origin(settings, None).tokenizer or settings.tokenizer
    prepared = prepare(dataset, tokenizer, ROOT / "data", settings.check_data)
    seen = look(settings, dataset, prepared)
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)
    with console.capture() as captured:
        console.print(page(seen, console.width, colour=console.is_terminal and not console.no_color))
    for line in captured.get().translate(ASCII if console.options.ascii_only else {}).splitlines():
        print(line.rstrip())
    print(f"\nTo train: {shlex.join(['python', nearby(ROOT / 'train.py'), *sys.argv[1:]])}")


if __name__ == "__main__":
    cli.main("train", PrepareSettings, show, script="data/prepare.py")
