"""The columns of tables: what is in them, and which hold text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpt.config import UserError, nearest, shown
from gpt.data.source.library import batches
from gpt.data.source.wording import listed

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

TEXT = ("string", "large_string", "string_view")
"""The types of columns that hold text."""


def type_of(value: Any) -> str:
    """The type of a value that JSON can hold, in JSON's words; text is a string."""
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "list", dict: "object"}
    return names.get(type(value), "null")


def column_types(rows: "IterableDataset | Dataset", where: str) -> dict[str, str]:
    """The columns and the types of what is in them; where the library does not know, those of the first row."""
    if rows.features is not None:
        return {name: getattr(feature, "dtype", type(feature).__name__) for name, feature in rows.features.items()}
    first = next(batches(rows, where, 1), {})
    return {name: type_of(values[0]) for name, values in first.items()}


def check_column(types: Mapping[str, str], column: str, where: str) -> None:
    """Refuse a column that is not there or holds no text, naming those that would do.

    Raises:
        UserError: it is not one of `types`, which maps columns to types, or not of one of the types `TEXT`.
    """
    if types.get(column) in TEXT:
        return
    there = {" ".join(name.split()): kind for name, kind in types.items()}
    fitting = [name for name, kind in there.items() if kind in TEXT]
    if not there:
        raise UserError(f"{where}: it has no columns; name a table that has a column of text")
    if not fitting:
        only = listed(f"{name} ({kind})" for name, kind in there.items())
        raise UserError(f"{where}: no column holds text; there {'is' if len(there) == 1 else 'are'} only {only}")
    held = types.get(column)
    wrong = f"column {column!r} holds {held}, not text" if held else f"there is no column {column!r}"
    close = nearest(column, fitting)
    raise UserError(f"{where}: {wrong}; {close}set dataset.column to one of {listed(fitting)}")


def check_once(names: Sequence[object], column: str, where: str) -> None:
    """Refuse a column whose name others have too.

    Raises:
        UserError: it is more than once among `names`.
    """
    if (number := names.count(column)) > 1:
        raise UserError(f"{where}: {number} columns are called {column!r}; rename all but one of them")


def texts(rows: "IterableDataset | Dataset", column: str, where: str) -> Iterator[str]:
    """The texts of a column, nulls left out.

    Raises:
        UserError: the rows cannot be read, or something else than text is in the column; `where` they are.
    """
    number = 0
    for batch in batches(rows, where):
        for text in batch[column]:
            number += 1
            if isinstance(text, str):
                yield text
            elif text is not None:
                raise UserError(f"{where}: row {number}: column {column!r} holds {shown(text)}, not text")
