"""Texts from the rows of tables: JSON lines, CSV and parquet files, and whatever else the library `datasets` opens.

All is read as a stream: memory does not grow with the file, and no copy is kept. Left to itself, the library guesses a
column's type from the rows that it happens to see first, and turns "007" into a number, "NA" into nothing and
"2024-01-01" into a date. So JSON is read as lines of text and parsed here, and all columns of a CSV are text.
"""

import glob
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from gpt.config import UserError, shown
from gpt.data.source.library import guarded, one_line, told

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

Errors = Literal["error", "replace"]
"""What becomes of bytes that are no text in the encoding: refused, or U+FFFD in their place."""

TEXT = ("string", "large_string", "string_view")
"""The types of columns that hold text."""

BATCH = 256
"""Rows in memory at a time, where the library counts in rows: each may be a whole book."""

ENDING = re.compile(r"\.(?:(jsonl|ndjson|json|csv|tsv)(?:\.gz)?|(parquet))$", re.IGNORECASE)


def ending(path: str) -> str:
    """What kind of table the name of a file, or a URL, ends like; '' for none.

    >>> ending("https://host/A.CSV.gz?download=true"), ending("a.parquet"), ending("csv"), ending("a.txt.gz")
    ('csv', 'parquet', '', '')
    """
    found = ENDING.search(urlsplit(path).path if "://" in path else path)
    return (found[1] or found[2]).lower() if found else ""


def is_table(path: str) -> bool:
    """Whether a file, or URL, is a table by its name: .jsonl .ndjson .json .csv .tsv, also with .gz, or .parquet."""
    return bool(ending(path))


def read_files(paths: Sequence[str], column: str, encoding: str = "utf-8", errors: Errors = "error") -> Iterator[str]:
    """The texts of a column, in the order of files and rows; nulls are left out, empty texts are not.

    Args:
        paths: files, or URLs of hf, each `is_table`.
        column: its name.
        encoding: of JSON and CSV; parquet has its own.
        errors: what becomes of bytes that are no text in that encoding.

    Raises:
        UserError: a file cannot be read, or has no such column of text.
    """
    decoding = {"encoding": encoding, "encoding_errors": "strict" if errors == "error" else errors}
    for path in paths:
        match ending(path):
            case "parquet":
                yield from _parquet(path, column)
            case "csv" | "tsv" as kind:
                yield from _csv(path, column, {**decoding, "sep": "\t" if kind == "tsv" else ","})
            case _:
                yield from _json(path, column, decoding)


def _parquet(path: str, column: str) -> Iterator[str]:
    batches = guarded(_parquet_batches(path, column), path)
    return (text for batch in batches for text in batch if text is not None)


def _parquet_batches(path: str, column: str) -> Iterator[list[str | None]]:
    """Read by pyarrow itself: through the library a row group, which may be the whole file, is in memory at once."""
    import fsspec
    from pyarrow import parquet, types

    with fsspec.open(path, "rb") as file:
        table = parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
        kinds = {f.name: f.type.value_type if types.is_dictionary(f.type) else f.type for f in table.schema_arrow}
        check_column({name: str(kind) for name, kind in kinds.items()}, column, path)
        for batch in table.iter_batches(BATCH, columns=[column], use_threads=False):
            yield batch.column(0).to_pylist()


def _csv(path: str, column: str, options: dict[str, Any]) -> Iterator[str]:
    header = list(next(batches(_open("csv", path, nrows=1, **options), path), {}))
    if not header:
        return iter(())
    if "__index_level_0__" in header:  # pandas takes what is too much for an index
        raise UserError(f"{path}: its first row has more fields than its header; mend it, or quote what holds a comma")
    check_column(dict.fromkeys(header, "string"), column, path)
    rows = _open("csv", path, **options, **csv_options(header))
    return texts(rows, column, path)


def csv_options(header: Sequence[str]) -> dict[str, Any]:
    """What makes the library give the fields of a CSV as they stand in the file."""
    from datasets import Features, Value

    features = Features(dict.fromkeys(header, Value("string")))
    return {"features": features, "na_filter": False, "chunksize": BATCH}


def _json(path: str, column: str, decoding: dict[str, Any]) -> Iterator[str]:
    """One object a line; a .json may also be one array of objects, which is read as a whole."""
    types: dict[str, str] = {}
    for number, row in _json_rows(path, decoding):
        where = f"{path}:{number}"
        if not isinstance(row, dict):
            raise UserError(
                f"{where}: {shown(row)} is no object; there must be one a line: {{{json.dumps(column)}: …}}"
            )
        if not types:
            types = {name: "string" if isinstance(value, str) else _json_type(value) for name, value in row.items()}
            check_column({**types, column: "string"} if row.get(column, 0) is None else types, column, path)
        text = row.get(column)
        if isinstance(text, str):
            yield _whole(text, where)
        elif text is not None:
            raise UserError(f"{where}: column {column!r} holds {shown(text)}, not text")
    if not types:
        raise UserError(f"{path}: the file is empty")


def _whole(text: str, where: str) -> str:
    """The text, none of whose characters is half of one: JSON can write such a thing, UTF-8 cannot."""
    if not text.isascii() and (half := re.search("[\ud800-\udfff]", text)):
        wrong = f"\\u{ord(half[0]):04x}"
        raise UserError(f"{where}: {wrong} is half of a surrogate pair and no character; remove it")
    return text


def _json_type(value: Any) -> str:
    return {bool: "bool", int: "number", float: "number", list: "list", dict: "object"}.get(type(value), "null")


def _json_rows(path: str, decoding: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """The values in a JSON file, each with the number of its line, from 1; in an array with its own number."""
    rows = _open("text", path, chunksize=1 << 20, **decoding)
    lines = (line for batch in batches(rows, path) for line in batch["text"])
    for number, line in enumerate(lines, 1):
        line = line.removeprefix("\ufeff") if number == 1 else line
        if number == 1 and line.lstrip().startswith("[") and ending(path) == "json":
            whole = next(batches(_open("text", path, sample_by="document", **decoding), path))["text"][0]
            yield from enumerate(_parsed(whole.removeprefix("\ufeff"), path), 1)
            return
        if line.strip():
            yield number, _parsed(line, f"{path}:{number}")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: this is no JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: this JSON cannot be read: {one_line(error)}") from None


def column_types(rows: "IterableDataset | Dataset", where: str) -> dict[str, str]:
    """The columns and the types of what is in them; where the library does not know, those of the first row."""
    if rows.features is not None:
        return {name: getattr(feature, "dtype", type(feature).__name__) for name, feature in rows.features.items()}
    first = next(batches(rows, where, 1), {})
    return {name: "string" if isinstance(values[0], str) else _json_type(values[0]) for name, values in first.items()}


def check_column(types: Mapping[str, str], column: str, where: str) -> None:
    """Refuse a column that is not there or holds no text, naming those that would do.

    Raises:
        UserError: it is not one of `types`, which maps columns to types, or not of one of the types `TEXT`.
    """
    if types.get(column) in TEXT:
        return
    there = {" ".join(name.split()): kind for name, kind in types.items()}
    fitting = [name for name, kind in there.items() if kind in TEXT]
    if not fitting:
        listed = ", ".join(f"{name} ({kind})" for name, kind in there.items())
        raise UserError(f"{where}: no column holds text; there {'is' if len(there) == 1 else 'are'} only {listed}")
    held = types.get(column)
    wrong = f"column {column!r} holds {held}, not text" if held else f"there is no column {column!r}"
    raise UserError(f"{where}: {wrong}; set dataset.column to one of {', '.join(fitting)}")


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


def batches(rows: "IterableDataset | Dataset", where: str, size: int = BATCH) -> Iterator[dict[str, list[Any]]]:
    """The rows, `size` at a time: columns and their values.

    Raises:
        UserError: they cannot be read; `where` they are.
    """
    return guarded(rows.iter(batch_size=size), where)


def _open(loader: str, path: str, **options: Any) -> "IterableDataset":
    """What a loader of the library reads from a file or URL."""
    from datasets import load_dataset

    files = path if "://" in path else glob.escape(path)
    with told(path), TemporaryDirectory() as locks:  # which the library would leave in the user's home
        return load_dataset(loader, data_files=files, split="train", streaming=True, cache_dir=locks, **options)
