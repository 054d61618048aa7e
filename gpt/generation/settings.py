"""The settings of a sample: of Python's `Run.generate`, and of the script `sample.py`."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from gpt.config import Config, UserError
from gpt.data.tokenizer import Unknown
from gpt.device import CompileMode, PrecisionName
from gpt.generation.decoder.prepared import Quantize
from gpt.generation.sampler import SamplerSettings

Overflow = Literal["stop", "slide", "error"]


class GenerationSettings(SamplerSettings):
    """How text is generated from a prompt, whatever the run and the machine."""

    max_new_tokens: int = Field(200, ge=1)
    """Tokens to write after the prompt, at most; a text may end before."""

    num_samples: int = Field(1, ge=1)
    """Texts to write for each prompt."""

    stop: str = ""
    """End a text right before this string; empty: never. \\n, \\t and \\\\ are newline, tab and backslash."""

    unknown: Unknown | None = None
    """What becomes of a character in the prompt that the tokenizer does not know: error refuses it, skip leaves it
    out, replace puts U+FFFD in its place; null does as the tokenizer was trained to."""

    overflow: Overflow = "slide"
    """When the text outgrows the model's context: slide forgets its oldest quarter and goes on, or just goes on where
    the model remembers equally much of a text of any length; stop ends the text; error refuses to start where prompt
    and max_new_tokens do not fit together."""


class PromptSettings(Config):
    """Which run continues which texts."""

    run: str = "latest"
    """The folder of the run that writes; latest is the newest one that holds a checkpoint; hf:FOLDER_OR_NAME is a model
    of Hugging Face's, nanogpt:FILE a checkpoint of nanoGPT's."""

    prompt: str = ""
    """The text to continue, taken literally after the first =; empty starts a new document. \\n, \\t and \\\\
    are newline, tab and backslash."""

    prompts: list[str] | str | None = None
    """Several texts to continue, side by side, in place of prompt: a list such as "['One','Two']", or a file
    with one prompt a line (UTF-8; blank lines are skipped)."""

    @field_validator("prompts", mode="before")
    @classmethod
    def _texts_only(cls, value: Any) -> Any:
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            wrong = next(item for item in value if not isinstance(item, str))
            raise ValueError(f"{wrong!r} is no text; quote it, as in prompts=\"['One','2024']\"")
        if not isinstance(value, list | str | None):
            raise ValueError(f"{value!r} is neither a list of texts nor a file with one prompt a line")
        if value in ([], ""):
            raise ValueError("there is no prompt in it; list some, or name a file with one prompt a line")
        return value

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.prompt and self.prompts is not None:
            raise ValueError("prompt and prompts are both given; leave one of them out")
        return self

    def texts(self) -> list[str]:
        """The prompts, read from their file where they stand in one.

        Raises:
            UserError: the file cannot be read, is no UTF-8, or holds no prompt.
        """
        if self.prompts is None:
            return [self.prompt]
        return read_prompts(Path(self.prompts)) if isinstance(self.prompts, str) else self.prompts


class SampleSettings(GenerationSettings, PromptSettings):
    """Write text with a trained model: continue a prompt, or several side by side.

    Examples:
        python sample.py
        python sample.py prompt="What's up, doc? (yes=no)" num_samples=3 temperature=0.6
        python sample.py run=runs/my-run max_new_tokens=1000 top_k=0 top_p=0.9 seed=7
        python sample.py "prompts=['The people','My fellow citizens']" stop=.
    """

    stream: bool = True
    """Show the first text while it is being written."""

    device: str = "auto"
    """Where the model runs: cpu, cuda, cuda:INDEX or mps; auto takes the fastest that there is."""

    precision: PrecisionName = "auto"
    """The numbers that the model computes with; auto takes the fastest that the device has for a model of this size."""

    compile: CompileMode = "auto"
    """off; auto: compile the step that writes a token, where so many are asked for that it repays itself, or where that
    was done before for a model of this shape; on; strict: and fail where that fails."""

    quantize: Quantize | None = None
    """int8: weights rounded to 8 bits for all tokens after the prompt; faster, and less exact. null: as trained."""

    debug: bool = False
    """Show the whole traceback of an error in place of one line."""


def read_prompts(path: Path) -> list[str]:
    """The lines of a UTF-8 file that are not blank, without their line ends."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(
            f"prompts: cannot read the file {path}: {error.strerror}; name one with one prompt a line"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(f"prompts: {path} is no UTF-8 at byte {error.start}; save it as UTF-8") from None
    prompts = [line.removesuffix("\r") for line in text.split("\n")]
    prompts = [line for line in prompts if line.strip()]
    if not prompts:
        raise UserError(f"prompts: {path} holds no prompt; write one a line")
    return prompts
