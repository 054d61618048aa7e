"""`python -m gpt export`: open a run, and write its model as a folder that transformers opens."""

from pathlib import Path

from gpt.config import Config, UserError
from gpt.export import card
from gpt.files import nearby, sync, workshop, writing
from gpt.interop.hugging_face.architectures import holding
from gpt.interop.hugging_face.writing import write
from gpt.run import Run, load

WRITING = ".exporting-"
"""How the name begins of the folder that it is made in."""


class ExportSettings(Config):
    """Write a trained model as a folder that Hugging Face's transformers opens, without code of ours.

    The weights are those of the best checkpoint, where one was evaluated, else of the last. What no class of
    transformers can hold exactly is refused.

    Examples:
        python -m gpt export to=my-model
        python -m gpt export run=runs/mine to=my-model
    """

    run: str = "latest"
    """The folder of the run, or one of the checkpoints in it; latest is the newest run that holds a checkpoint;
    nanogpt:FILE is a checkpoint of nanoGPT's."""
    to: str
    """The folder to write; it must not be there yet, or be empty."""
    debug: bool = False
    """Show the whole traceback of an error in place of one line."""


def export(settings: ExportSettings, _: Path | None) -> None:
    """Write the folder whole or not at all, and say which weights are in it.

    Raises:
        UserError: there is no such run, no class holds its model, or the folder cannot be written.
    """
    if settings.to == "":
        raise UserError("to: expected a folder, got nothing")
    to = Path(settings.to)
    refuse_taken(to)
    run = load(settings.run, "cpu", "fp32")
    print(run.describe())
    remarks = write_folder(run, to)
    print(*remarks, sep="\n", end="\n" * bool(remarks))
    print(f"{nearby(to)}: opens with AutoModelForCausalLM and AutoTokenizer of transformers")


def refuse_taken(to: Path) -> None:
    """An export never overwrites anything.

    Raises:
        UserError: something is there.
    """
    if to.exists() and not (to.is_dir() and not any(to.iterdir())):
        raise UserError(
            f"to: {to} is there already, and an export never overwrites anything; name a new folder, or remove that one"
        )


def write_folder(run: Run, to: Path) -> list[str]:
    """Make the folder aside, then give it its name.

    Returns:
        What is to be said of the tokenizer.

    Raises:
        UserError: no class holds the model, or the folder cannot be written.
    """
    architecture = holding(run.model)
    with writing("to", to.absolute().parent), workshop(to.absolute().parent, WRITING) as place:
        aside = place / "model"
        aside.mkdir()
        remarks = write(architecture, run.model, run.tokenizer, aside)
        text = card.written(run, architecture, to.absolute().name, remarks)
        (aside / "README.md").write_bytes(text.encode(errors="replace"))  # a folder's name need not be UTF-8
        for path in (*aside.iterdir(), aside):
            sync(path)
        if to.is_dir():
            to.rmdir()  # it is empty, else this fails; not all systems rename over a folder
        aside.rename(to)
    return remarks
