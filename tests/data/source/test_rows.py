import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from datasets import Dataset, disable_progress_bars
from datasets.utils import logging
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpt.config import ROOT, UserError
from gpt.data.source.columns import check_column, column_types, texts
from gpt.data.source.rows import csv_options, ending, is_table, read_files

TRICKY = [
    "a\r\nb",
    "lone\rcr",
    "\u2028\u2029\x85",
    "\0nul",
    "",
    "NA",
    "null",
    "None",
    "007",
    "1.0",
    "2024-01-01",
    "😀",
    ' "q", x',
    "私は",
    "\ufeffmark",
]
PARQUET = ROOT.parent / "shared" / "corpora" / "parquet"
needs_parquet = pytest.mark.skipif(not PARQUET.is_dir(), reason="needs the parquet files of shared/corpora")

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def put(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def as_csv(values: list[str], sep: str = ",") -> bytes:
    table = io.StringIO(newline="")
    writer = csv.writer(table, delimiter=sep, quoting=csv.QUOTE_ALL)
    writer.writerows([["id", "text"], *([i, value] for i, value in enumerate(values))])
    return table.getvalue().encode()


def as_jsonl(values: list[str], ascii: bool = True, end: str = "\n") -> bytes:
    return "".join(json.dumps({"id": 1, "text": value}, ensure_ascii=ascii) + end for value in values).encode()


def refused(path: str, column: str = "text", **options) -> str:
    with pytest.raises(UserError) as error:
        list(read_files([path], column, **options))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name, kind", [
    ("a.jsonl", "jsonl"), ("A.NDJSON", "ndjson"), ("a.b.json.gz", "json"), ("dir.x/a.CSV.GZ", "csv"), ("a.tsv", "tsv"),
    ("https://host/a.parquet?download=true#x", "parquet"), ("hf://datasets/u/n@v/a-*.parquet", "parquet"),
    ("a.parquet.gz", ""), ("a.txt", ""), ("a.gz", ""), ("csv", ""), ("a.csv/b", ""), ("https://host/b?x=a.csv", ""),
])  # fmt: skip
def test_a_table_is_told_by_its_name(name, kind):
    assert ending(name) == kind
    assert is_table(name) == bool(kind)


@pytest.mark.parametrize("name, content", [
    ("a.jsonl", as_jsonl(TRICKY)),
    ("a.ndjson", as_jsonl(TRICKY, ascii=False, end="\r\n\r\n")),
    ("a.JSONL.gz", gzip.compress(as_jsonl(TRICKY), mtime=0)),
    ("a.json", as_jsonl(TRICKY)),
    ("array.json", json.dumps([{"text": value} for value in TRICKY], indent=1).encode()),
    ("marked array.json", b"\xef\xbb\xbf" + json.dumps([{"text": value} for value in TRICKY]).encode()),
    ("marked.jsonl", b"\xef\xbb\xbf" + as_jsonl(TRICKY)),
    ("a.csv", as_csv(TRICKY)),
    ("a.csv.gz", gzip.compress(as_csv(TRICKY), mtime=0)),
    ("marked.csv", b"\xef\xbb\xbf" + as_csv(TRICKY)),
    ("a.tsv", as_csv(TRICKY, "\t")),
    ("odd [1]*? #%20 name.jsonl", as_jsonl(TRICKY)),
    ("x[1].csv.GZ", gzip.compress(as_csv(TRICKY), mtime=0)),
    ("c::d.csv", as_csv(TRICKY)),
    ("semicolon.csv", as_csv(TRICKY, ";")),
    ("later.json", b"\n \n" + json.dumps([{"text": value} for value in TRICKY], indent=1).encode()),
    (".hidden.csv", as_csv(TRICKY)),
])  # fmt: skip
def test_text_comes_out_as_it_stands_in_the_file(tmp_path, name, content):
    assert list(read_files([put(tmp_path / name, content)], "text")) == TRICKY


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_parquet_whatever_type_its_strings_have(tmp_path, kind):
    values = pa.array([*TRICKY, None], pa.string())
    table = pa.table({"id": range(len(values)), "text": values.cast(kind)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    assert list(read_files([str(tmp_path / "a.parquet")], "text")) == TRICKY


@given(st.lists(TEXT, min_size=1))
@settings(deadline=None, max_examples=25)
def test_any_text_in_json_and_csv(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("tables")
    paths = [put(folder / "a.jsonl", as_jsonl(values)), put(folder / "b.csv", as_csv(values))]
    assert list(read_files(paths, "text")) == values * 2


def test_a_column_that_begins_as_numbers_stays_text(tmp_path):
    values = ["1"] * 12_000 + ["one"] + ["2024-01-01"] * 200
    paths = [put(tmp_path / "a.csv", as_csv(values)), put(tmp_path / "b.jsonl", as_jsonl(values))]
    assert list(read_files(paths, "text")) == values * 2


def test_nulls_and_missing_keys_are_left_out_and_other_columns_may_change_type(tmp_path):
    lines = ['{"text": "a", "x": 1}', '{"text": null}', '{"x": {"y": []}}', '{"x": "s", "text": "b", "new": true}']
    assert list(read_files([put(tmp_path / "a.jsonl", "\n".join(lines).encode())], "text")) == ["a", "b"]


@pytest.mark.parametrize("name, content", [
    ("long.jsonl", b'{"text": "' + b"y" * 30_000_000 + b'"}'), ("long.csv", b'text\n"' + b"y" * 30_000_000 + b'"\n')
])  # fmt: skip
def test_a_text_of_thirty_million_characters(tmp_path, name, content):
    (text,) = read_files([put(tmp_path / name, content)], "text")
    assert len(text) == 30_000_000


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "shift_jis"])
def test_the_encoding_is_the_files(tmp_path, name, encoding):
    text = "日本" if encoding == "shift_jis" else "déjà vu"
    content = as_csv([text]) if name.endswith("csv") else as_jsonl([text], ascii=False)
    path = put(tmp_path / name, content.decode().encode(encoding))
    assert list(read_files([path], "text", encoding)) == [text]


@pytest.mark.parametrize("name, content, offset", [
    ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', 24),
    ("a.csv", b"id,text\n1,\xff\n", 10),
    ("far.csv", b"id,text\n" + b"1,x\n" * 100_000 + b"2,\xff\n", 400_010),
    ("far.jsonl.gz", gzip.compress(b'{"text": "x"}\n' * 50_000 + b"\xff", mtime=0), 700_000),
])  # fmt: skip
def test_bytes_that_are_no_text(tmp_path, name, content, offset):
    path = put(tmp_path / name, content)
    assert refused(path) == (
        f"{path}: byte 0xff at offset {offset} is no utf-8; "
        "set dataset.encoding to what it is in, or dataset.errors to replace"
    )
    if "far" not in name:
        assert list(read_files([path], "text", errors="replace"))[-1] == "\ufffd"


def test_a_missing_column_names_those_that_hold_text(tmp_path):
    lines = put(tmp_path / "a.jsonl", b'{"n": 1, "title": "x", "body": "y"}\n')
    assert refused(lines) == f"{lines}: there is no column 'text'; set dataset.column to one of title, body"
    assert (
        refused(lines, "n") == f"{lines}: column 'n' holds number, not text; set dataset.column to one of title, body"
    )
    table = put(tmp_path / "a.csv", b'"two\nlines",n\nx,1\n')
    assert refused(table) == f"{table}: there is no column 'text'; set dataset.column to one of two lines, n"
    numbers = put(tmp_path / "b.jsonl", b'{"n": 1, "l": [], "o": {}, "b": true, "z": null}\n')
    assert refused(numbers).endswith(
        "no column holds text; there are only n (number), l (list), o (object), b (bool), z (null)"
    )


def test_a_row_without_the_column_is_left_out_wherever_it_is(tmp_path):
    late = put(tmp_path / "a.jsonl", b'{"n": 1}\n{}\n{"text": "a"}\n{"n": 2}\n')
    assert list(read_files([late], "text")) == ["a"]
    nulls = put(tmp_path / "b.jsonl", b'{"n": 1}\n{"text": null}\n')
    assert list(read_files([nulls], "text")) == []
    never = put(tmp_path / "c.jsonl", b'{"n": 1}\n{"title": "x"}\n{"body": "y", "title": 3}\n')
    assert refused(never) == f"{never}: there is no column 'text'; set dataset.column to one of title, body"


def test_a_semicolon_in_a_table_of_commas_is_text(tmp_path):
    path = put(tmp_path / "a.csv", b"n,text\n1,a;b\n")
    assert list(read_files([path], "text")) == ["a;b"]
    said = "there is no column 'x'; set dataset.column to one of n, text"
    semicolons = put(tmp_path / "b.csv", b"n;text\n1,5;a\n")
    assert refused(semicolons, "x") == f"{semicolons}: {said}"


def test_two_columns_of_one_name_in_parquet(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    parquet.write_table(table, path := str(tmp_path / "a.parquet"))
    assert refused(path) == f"{path}: 2 columns are called 'text'; rename all but one of them"


def test_a_column_may_be_called_as_pandas_calls_a_second_one(tmp_path):
    assert list(read_files([put(tmp_path / "a.csv", b"text,text.1\na,b\n")], "text")) == ["a"]


def test_not_all_of_many_columns_are_listed(tmp_path):
    path = put(tmp_path / "a.jsonl", json.dumps({f"c{i}": "x" for i in range(50)}).encode())
    assert refused(path).endswith("c18, c19 and 30 more")


@needs_parquet
def test_parquet_files_of_others():
    flags, names = str(PARQUET / "overflow_i16_page_cnt.parquet"), str(PARQUET / "delta_byte_array.parquet")
    assert refused(flags) == f"{flags}: no column holds text; there is only inc (bool)"
    assert refused(names).startswith(
        f"{names}: there is no column 'text'; set dataset.column to one of c_customer_id, c_sal"
    )
    assert list(read_files([names], "c_customer_id"))[:1] == ["AAAAAAAAIODAAAAA"]


def test_columns_of_other_types(tmp_path):
    table = pa.table({"bytes": [b"x"], "list": [["x"]], "text": ["x"]})
    parquet.write_table(table, path := str(tmp_path / "a.parquet"))
    assert refused(path, "bytes") == f"{path}: column 'bytes' holds binary, not text; set dataset.column to one of text"
    assert "column 'list' holds list" in refused(path, "list")


@pytest.mark.parametrize("value, shown", [("5", "5"), ("[1]", "[1]"), ('{"a": 1}', "{'a': 1}"), ("true", "true")])
def test_a_row_that_holds_something_else_than_text(tmp_path, value, shown):
    path = put(tmp_path / "a.jsonl", f'{{"text": "x"}}\n\n{{"text": {value}}}\n'.encode())
    assert refused(path) == f"{path}:3: column 'text' holds {shown}, not text"


@pytest.mark.parametrize("name, content, said", [
    ("a.jsonl", b"", ": the file is empty"),
    ("a.csv", b"", ": the file is empty"),
    ("a.parquet", b"", ": the file is empty"),
    ("a.jsonl", b"\n\n", ": the file is empty"),
    ("a.jsonl", b"7", ":1: 7 is no object; there must be one a line: {\"text\": …}"),
    ("a.jsonl", b'\n[\n{"text": "x"}]', ": it is an array, and no object a line; rename it so that it ends in .json"),
    ("a.jsonl", b'{"text": "x"}\n{"text": "x"\n', ":2: this is no JSON: Expecting ',' delimiter at character 12"),
    ("a.json", b'[{"text": "x"},\n5]', ":2: 5 is no object; there must be one a line: {\"text\": …}"),
    ("a.jsonl", b'{"a":' * 100_000, ":1: this JSON cannot be read: maximum recursion depth exceeded"),
    ("a.jsonl", b'{"text": "a\\ud83d"}', ":1: \\ud83d is half of a surrogate pair and no character; remove it"),
    ("a.csv", b"text\n1,2\n", ": its first row has more fields than its header; mend it, or quote what holds a comma"),
    ("a.csv", b"text\n1\n1,2\n", ": cannot be read: Error tokenizing data. C error: Expected 1 fields in line 3"),
    ("a.csv", b'text\n"a', ": cannot be read: Error tokenizing data. C error: EOF inside string starting at row 1"),
    ("a.csv.gz", b"text\nx", ": cannot be read: Not a gzipped file"),
    ("a.jsonl.gz", gzip.compress(b'{"text": "x"}', mtime=0)[:-9], ": cannot be read: Compressed file ended before"),
    ("a.jsonl", b"{}\n{}", ": it has no columns; name a table that has a column of text"),
    ("a.csv", b"text,n,text\na,1,b\n", ": 2 columns are called 'text'; rename all but one of them"),
    ("a.tsv", b"text\ttext\ttext\na\tb\tc\n", ": 3 columns are called 'text'; rename all but one of them"),
    ("a.parquet", b"PAR1, or not", ": cannot be read: Parquet magic bytes not found"),
])  # fmt: skip
def test_files_that_are_not_what_their_names_say(tmp_path, name, content, said):
    path = put(tmp_path / name, content)
    assert refused(path).startswith(path + said)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_file_that_is_not_there(tmp_path, name):
    assert refused(str(tmp_path / name)) == f"{tmp_path / name}: there is no such file"


def test_an_encoding_that_is_none(tmp_path):
    path = put(tmp_path / "a.jsonl", b'{"text": "x"}')
    known = "set dataset.encoding to one that Python knows, such as utf-8, latin-1 or utf-16"
    assert refused(path, encoding="utf-9") == f"{path}: unknown encoding: utf-9; {known}"


def test_rows_of_the_library(tmp_path):
    rows = Dataset.from_dict({"n": [1, 2], "text": ["a", None]})
    assert column_types(rows, "here") == {"n": "int64", "text": "string"}
    assert list(texts(rows, "text", "here")) == ["a"]
    with pytest.raises(UserError, match="here: row 1: column 'n' holds 1, not text"):
        list(texts(rows, "n", "here"))
    with pytest.raises(UserError, match="here: column 'n' holds int64, not text; set dataset.column to one of text"):
        check_column(column_types(rows, "here"), "n", "here")
    path = put(tmp_path / "a.csv", b"a\n1\n")
    assert csv_options(path, "a", {})["features"].arrow_schema.field("a").type == pa.string()


def test_the_library_is_silent_and_left_as_it_was(tmp_path, capfd):
    disable_progress_bars()
    logging.set_verbosity_info()
    path = put(tmp_path / "a.csv", b"text\nx\n\xff")
    refused(path)
    assert logging.get_verbosity() == logging.INFO
    assert capfd.readouterr() == ("", "")


def test_nothing_is_written_beside_the_file_or_at_home(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for name, content in (("a.csv", as_csv(TRICKY)), ("a.jsonl", as_jsonl(TRICKY))):
        assert list(read_files([put(tmp_path / name, content)], "text")) == TRICKY
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "a.jsonl"}


WATCHED = """
import sys
from gpt.data.source.columns import check_column, column_types, texts
from gpt.data.source.rows import csv_options, ending, is_table, read_files
def now():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
for path in sys.argv[1:]:
    print(max(now() for i, _ in enumerate(read_files([path], "text")) if i % 50 == 0))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, ending):
    """Read whole, the larger file would take 60 MB more at the least."""
    paths = []
    for size in (5, 60):
        values = [f"{i} " * 500 for i in range(size * 300)]
        paths.append(str(tmp_path / f"{size}.{ending}"))
        if ending == "parquet":
            parquet.write_table(pa.table({"text": values}), paths[-1])
        else:
            put(Path(paths[-1]), as_csv(values) if ending == "csv" else as_jsonl(values))
    done = subprocess.run([sys.executable, "-c", WATCHED, *paths], capture_output=True, text=True, check=True, cwd=ROOT)
    small, large = (int(line) for line in done.stdout.split())
    assert large < small + 30_000, f"{small} kB for 5 MB, {large} kB for 60 MB"
