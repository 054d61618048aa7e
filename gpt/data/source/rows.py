"""Texts from the rows of tables: JSON lines, CSV and parquet files, and whatever else the library `datasets` opens.

All is read as a stream: memory does not grow with the file, and no copy is kept. Left to itself, the library guesses a
column's type from the rows that it happens to see first, and turns "007" into a number, "NA" into nothing and
"2024-01-01" into a date. So JSON is read as lines of text and parsed here, and all columns of a CSV are text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

from gpt.config import UserError
from gpt.data.source import json_rows
from gpt.data.source.columns import check_column, check_once
from gpt.data.source.library import BATCH, guarded, opened, read_rows

Errors = Literal["error", "replace"]
"""What becomes of bytes that are no text in the encoding: refused, or U+FFFD in their place."""

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
            case kind:
                yield from json_rows.texts_of(path, column, kind == "json", decoding)


def _parquet(path: str, column: str) -> Iterator[str]:
    batches = guarded(_parquet_batches(path, column), path)
    return (text for batch in batches for text in batch if text is not None)


def _parquet_batches(path: str, column: str) -> Iterator[list[str | None]]:
    """Read by pyarrow itself: through the library a row group, which may be the whole file, is in memory at once."""
    from pyarrow import parquet, types

    with opened(path) as file:
        table = parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
        kinds = {f.name: f.type.value_type if types.is_dictionary(f.type) else f.type for f in table.schema_arrow}
        check_once(table.schema_arrow.names, column, path)
        check_column({name: str(kind) for name, kind in kinds.items()}, column, path)
        for batch in table.iter_batches(BATCH, columns=[column], use_threads=False):
            yield batch.column(0).to_pylist()


def _csv(path: str, column: str, options: Mapping[str, Any]) -> Iterator[str]:
    exact = csv_options(path, column, options)
    return (text for batch in read_rows("csv", path, **exact) for text in batch[column]) if exact else iter(())


def csv_options(path: str, column: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the library give the fields of a CSV as they stand in the file; nothing for one without rows.

    Args:
        path: a file, or a URL.
        column: that must be there, once.
        options: of the library's loader.

    Raises:
        UserError: the file cannot be read, has no such column, or has more fields than columns.
    """
    from datasets import Features, Value

    header = list(next(read_rows("csv", path, 1, **{**options, "nrows": 1}), {}))
    if not header:
        return {}
    named = [field for field in header if not field.startswith("__index_level_")]
    if options.get("sep", ",") == "," and len(named) == 1 and ";" in named[0]:
        # So spreadsheets write it where the comma is the decimal point.
        return csv_options(path, column, {**options, "sep": ";"})
    if "__index_level_0__" in header:  # pandas takes what is too much for an index
        raise UserError(f"{path}: its first row has more fields than its header; mend it, or quote what holds a comma")
    if f"{column}.1" in header:  # so pandas calls a second one
        first = next(read_rows("csv", path, 1, **{**options, "nrows": 1, "header": None}))
        check_once([values[0] for values in first.values()], column, path)
    check_column(dict.fromkeys(header, "string"), column, path)
    features = Features(dict.fromkeys(header, Value("string")))
    return {**options, "features": features, "na_filter": False, "chunksize": BATCH}
