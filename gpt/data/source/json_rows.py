"""The texts of JSON files: one object a line, or one array of objects."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpt.config import UserError, shown
from gpt.data.source.columns import check_column, type_of
from gpt.data.source.library import read_rows
from gpt.data.source.wording import one_line


def texts_of(path: str, column: str, array: bool, decoding: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a column; a row without it, or with null there, is left out.

    Args:
        path: a file, or a URL of hf.
        column: its name.
        array: whether the file may be one array, which is read as a whole.
        decoding: `encoding` and `encoding_errors`, as the library names them.

    Raises:
        UserError: the file cannot be read, a value is no text, or no row has the column.
    """
    types: dict[str, str] = {}
    empty, found = True, False
    for number, row in _rows(path, array, decoding):
        where, empty = f"{path}:{number}", False
        if not isinstance(row, dict):
            raise UserError(
                f"{where}: {shown(row)} is no object; there must be one a line: {{{json.dumps(column)}: …}}"
            )
        text = row.get(column)
        if not found:  # what there is instead is of interest only as long as there is no text
            found = column in row and (text is None or isinstance(text, str))
            types.update({name: type_of(value) for name, value in row.items() if types.get(name) != "string"})
        if isinstance(text, str):
            yield _whole(text, where)
        elif text is not None:
            if not found:
                check_column(types, column, path)
            raise UserError(f"{where}: column {column!r} holds {shown(text)}, not text")
    if empty:
        raise UserError(f"{path}: the file is empty")
    if not found:
        check_column(types, column, path)


def _whole(text: str, where: str) -> str:
    """The text, none of whose characters is half of one: JSON can write such a thing, UTF-8 cannot."""
    if not text.isascii() and (half := re.search("[\ud800-\udfff]", text)):
        wrong = f"\\u{ord(half[0]):04x}"
        raise UserError(f"{where}: {wrong} is half of a surrogate pair and no character; remove it")
    return text


def _rows(path: str, array: bool, decoding: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
    """The values in a file, each with the number of its line, from 1; in an array with its own number."""
    lines = (line for batch in read_rows("text", path, chunksize=1 << 20, **decoding) for line in batch["text"])
    first = True
    for number, line in enumerate(lines, 1):
        line = line.removeprefix("\ufeff") if number == 1 else line
        if not line.strip():
            continue
        if first and line.lstrip().startswith("["):
            if not array:
                raise UserError(f"{path}: it is an array, and no object a line; rename it so that it ends in .json")
            whole = next(read_rows("text", path, sample_by="document", **decoding))["text"][0]
            yield from enumerate(_parsed(whole.removeprefix("\ufeff"), path), 1)
            return
        first = False
        yield number, _parsed(line, f"{path}:{number}")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: this is no JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: this JSON cannot be read: {one_line(error)}") from None
