"""The settings of a look into a model: what `python -m gpt inspect` takes."""

from pydantic import Field

from gpt.config import Config
from gpt.data.tokenizer import Unknown
from gpt.device import PrecisionName


class InspectSettings(Config):
    """Look into a trained model while it reads a text: next tokens, surprise, and what each head attends to.

    Shows it in the terminal, and leaves pictures and a page to open in a browser, in place of those of the text before.

    Examples:
        python -m gpt inspect prompt='The people of the'
        python -m gpt inspect run=runs/mine prompt='私は機械学習が大好きです' top=20
        python -m gpt inspect prompt='The army' to=pictures
    """

    run: str = "latest"
    """The folder of the run to look into; latest is the newest one that holds a checkpoint."""
    prompt: str = ""
    """The text, taken literally after the first =; empty: where a new document begins. \\n, \\t and \\\\ are newline,
    tab and backslash."""
    to: str | None = None
    """The folder for the pictures and the page; null: inspect, in the run's folder."""
    top: int = Field(10, ge=1)
    """How many of the tokens that may come next are listed."""
    unknown: Unknown | None = None
    """What becomes of a character that the tokenizer does not know: error refuses it, skip leaves it out, replace puts
    U+FFFD in its place; null does as the tokenizer was trained to."""
    device: str = "auto"
    """Where the model runs: cpu, cuda, cuda:INDEX or mps; auto takes the fastest that there is."""
    precision: PrecisionName = "fp32"
    """The numbers that the model computes with: exact unless told otherwise; auto takes the fastest."""
    debug: bool = False
    """Show the whole traceback of an error in place of one line."""
