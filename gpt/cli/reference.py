"""The pages of `--help` as one document in Markdown."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpt.cli.help import Option, Row, choices, docstring, presets, settings_of
from gpt.config import Config

INDENTED = "  "
"""How a row begins that is a setting; others are titles."""


def chapter(
    script: str, settings: type[Config], defaults: Mapping[str, Any], options: Mapping[str, Option], known: set[str]
) -> Iterator[str]:
    """The lines of a script's chapter.

    Args:
        script: as it is typed.
        settings: its typed settings.
        defaults: the composed configuration of a call without arguments.
        options: the choices, by group.
        known: rows that an earlier chapter has, which are left out; those of this one are added.
    """
    about = docstring(settings)
    yield f"## {script}\n\n{about['']}\n"
    if "Examples" in about:
        yield f"```sh\n{about['Examples']}\n```\n"
    yield from table("choice", "options, a star at the default", choices(options), known)
    yield from table("preset", "what it is", presets(options), known)
    title: Row | None = None
    part: list[Row] = []
    for row in [*settings_of(settings, defaults, options), None]:
        if row is not None and row[0].plain.startswith(INDENTED):
            part.append(row)
            continue
        lines = list(table("setting", "what it is", part, known))
        if lines and title and title[0].plain:
            yield f"### `{title[0].plain}`\n\n{title[1].plain}\n"
        yield from lines
        title, part = row, []


def table(left: str, right: str, rows: Iterable[Row], known: set[str]) -> Iterator[str]:
    """A table of those rows that are not known, none where all are."""
    lines = [f"| `{cell(name.plain)}` | {cell(text.plain)} |" for name, text in rows]
    fresh = [line for line in lines if line not in known]
    known.update(fresh)
    if fresh:
        yield "\n".join([f"| {left} | {right} |", "| --- | --- |", *fresh, ""])


def cell(text: str) -> str:
    r"""A text as it stands in a cell.

    >>> cell(" int | null ")
    'int \\| null'
    """
    return text.strip().replace("|", r"\|")
