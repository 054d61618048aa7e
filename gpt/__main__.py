"""`python -m gpt VERB …`: a table from verb to module, nothing more."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

from gpt import cli


class Verb(NamedTuple):
    """What a verb hands over to; the module is imported only when the verb is typed."""

    module: str
    settings: str
    """The module's class of its settings, which start from the file in configs/ that is named like the verb."""
    task: str
    """The module's function that does it, as `gpt.cli.main` takes it."""
    does: str
    """What it does, in a few words."""


VERBS: Mapping[str, Verb] = {
    "bench": Verb(
        "gpt.insight.bench.bench", "BenchSettings", "bench", "training and decoding speed beside transformers"
    ),
}


def main() -> None:
    """Hand over to the verb's module; without a verb list them, with an unknown one exit with code 2."""
    verb = next(iter(sys.argv[1:]), "--help")
    if verb in ("-h", "--help"):
        print(listed())
    elif verb in VERBS:
        sys.argv[1:2] = []
        module = import_module(VERBS[verb].module)
        settings, task = (getattr(module, name) for name in VERBS[verb][1:3])
        cli.main(verb, settings, task, script=f"-m gpt {verb}")
    else:
        print(f"error: {verb}: there is no such verb; python -m gpt lists those that there are", file=sys.stderr)
        sys.exit(2)


def listed() -> str:
    """The verbs as lines of text."""
    lines = [f"  {name:10} {verb.does}" for name, verb in VERBS.items()]
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
