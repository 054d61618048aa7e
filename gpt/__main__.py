"""`python -m gpt VERB …`: a table from verb to module, nothing more."""

import sys
from collections.abc import Mapping
from importlib import import_module

VERBS: Mapping[str, tuple[str, str]] = {}
"""Verb -> the module whose `main()` does it, and what it does in a few words."""


def main() -> None:
    """Hand over to the verb's module; without a verb list them, with an unknown one exit with code 2."""
    verb = next(iter(sys.argv[1:]), "--help")
    if verb in ("-h", "--help"):
        print(listed())
    elif verb in VERBS:
        sys.argv[1:2] = []
        import_module(VERBS[verb][0]).main()
    else:
        print(f"error: {verb}: there is no such verb; python -m gpt lists those that there are", file=sys.stderr)
        sys.exit(2)


def listed() -> str:
    """The verbs as lines of text."""
    lines = [f"  {verb:10} {does}" for verb, (_, does) in VERBS.items()]
    return "\n".join(
        [
            "python -m gpt VERB …",
            "",
            *(lines or ["There are no verbs yet."]),
            "",
            "To train and to sample: python train.py --help, python sample.py --help",
        ]
    )


if __name__ == "__main__":
    main()
