"""`python -m gpt VERB …`: a table from verb to module, nothing more."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from gpt import cli
from gpt.cli.composition import CONFIGS, groups_in
from gpt.cli.ending import tell
from gpt.config import UserError, nearest
from gpt.literal import typed


class Verb(NamedTuple):
    """What a verb hands over to; the module is imported only when the verb is typed."""

    module: str
    settings: str
    """The module's class of its settings, which start from the file in configs/ that is named like the verb."""
    task: str
    """The module's function that does it, as `gpt.cli.main` takes it."""
    does: str
    """What it does, in a few words."""
    word: str = ""
    """The choice that a plain word after the verb picks; empty: such a word is a mistake."""
    words: str = ""
    """The setting that is the list of all plain words after the verb; empty: there is none."""
    tabled: bool = False
    """Whether a sweep of it leaves its table, in a folder of its own."""


VERBS: Mapping[str, Verb] = {
    "bench": Verb(
        "gpt.insight.bench.bench",
        "BenchSettings",
        "bench",
        "speed of training and decoding beside other libraries, and time to a loss",
        tabled=True,
    ),
    "compare": Verb(
        "gpt.insight.compare.compare", "CompareSettings", "compare", "runs in a table, the best first", words="runs"
    ),
    "export": Verb(
        "gpt.export.export", "ExportSettings", "export", "a trained model as a folder that transformers opens"
    ),
    "inspect": Verb(
        "gpt.insight.inspect.inspect", "InspectSettings", "inspect", "surprise, next tokens, what each head attends to"
    ),
    "plan": Verb("gpt.insight.plan.plan", "PlanSettings", "plan", "what a training will cost, before it begins"),
    "report": Verb(
        "gpt.insight.report.report", "ReportSettings", "report", "a page about a run, as train.py leaves it"
    ),
    "study": Verb(
        "gpt.insight.studying", "StudySettings", "study", "theory measured, a table and a plot each", "study"
    ),
}


def main() -> None:
    """Hand over to the verb's module; without a verb list them; a mistake is one line and exit code 2."""
    name = next(iter(sys.argv[1:]), "--help")
    if name in ("-h", "--help"):
        print(listed())
        return
    try:
        if name not in VERBS:
            raise UserError(f"{name}: there is no such verb; python -m gpt lists those that there are")
        verb = VERBS[name]
        sys.argv[1:] = given(verb, sys.argv[2:])
    except UserError as error:
        sys.exit(tell(error, debug=False).code)
    module = import_module(verb.module)
    claim = import_module("gpt.runs").claim_folder if verb.tabled else None
    cli.main(name, getattr(module, verb.settings), getattr(module, verb.task), script=f"-m gpt {name}", claim=claim)


def given(verb: Verb, argv: Sequence[str]) -> list[str]:
    """The arguments of a verb, in which plain words have become settings.

    Raises:
        UserError: as of `with_word`.
    """
    if verb.words:
        return with_words(argv, verb.words)
    return with_word(argv, verb.word) if verb.word else list(argv)


def with_words(argv: Sequence[str], setting: str) -> list[str]:
    """The arguments, the plain words among them as a list in `setting`; the path of what there is may have a =."""
    words = [word for word in argv if word[:1] not in ("-", "~") and ("=" not in word or Path(word).exists())]
    others = [argument for argument in argv if argument not in words]
    return [*others, typed(setting, words)] if words else others


def with_word(argv: Sequence[str], choice: str) -> list[str]:
    """The arguments of a verb that takes one plain word, NAME, in whose place is `choice=NAME`.

    Raises:
        UserError: there is no such word, and no help is asked for; or there are several, or an unknown one.
    """
    names = groups_in(CONFIGS)[choice]
    words = [argument for argument in argv if "=" not in argument and argument[:1] not in ("-", "~")]
    unknown = next((name for word in words for name in word.split(",") if name not in names), None)
    if unknown is not None:
        raise UserError(f"{choice}: there is no {unknown!r}; {nearest(unknown, names)}there are {', '.join(names)}")
    picked = [*words, *(argument for argument in argv if argument.startswith(f"{choice}="))]
    if len(picked) != 1 and not {"-h", "--help"}.intersection(argv):
        raise UserError(f"{choice}: name one, as in python -m gpt {choice} NAME; there are {', '.join(names)}")
    return [f"{choice}={argument}" if argument in words else argument for argument in argv]


def listed() -> str:
    """The verbs as lines of text."""
    lines = [f"  {f'{name} NAME' if verb.word else name:10} {verb.does}" for name, verb in VERBS.items()]
    return "\n".join(
        [
            "python -m gpt VERB …",
            "",
            *lines,
            "",
            "python -m gpt VERB --help lists what can be set.",
            "To train and to sample: python train.py --help, python sample.py --help",
        ]
    )


if __name__ == "__main__":
    main()
