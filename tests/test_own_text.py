"""Texts as people have them, from the command line to prepared tokens: a right result, or one line and nothing left."""

import gzip
import json
import random
import shutil
import subprocess
import sys

import pytest

from gpt.cli import compose
from gpt.config import ROOT, UserError
from gpt.training.settings import TrainSettings

CORPORA = ROOT.parent / "shared" / "corpora"
TOKENIZERS = ("tokenizer=byte", "tokenizer=char", "tokenizer=bpe")


def prepared(folder, *arguments):
    settings, _ = compose("train", ["dataset=text", f"dataset.path={folder}", *arguments], TrainSettings)
    return settings.prepare_data(folder.parent / "tokens")


def texts(data) -> bytes:
    """All text of both splits, in order where validation is the tail."""
    splits = [data.train, *([data.validation] if data.validation is not None else [])]
    return b"".join(data.tokenizer.decode_bytes(split.tokens.tolist()) for split in splits)


@pytest.fixture
def file(tmp_path):
    """Makes a file of the content, in a folder of its own."""
    (tmp_path / "own").mkdir()

    def make(content: bytes, name: str = "text.txt"):
        path = tmp_path / "own" / name
        path.write_bytes(content)
        return path

    return make


LINE = "".join(f"word{i} " for i in range(1_000_000))[: 10 * 1024 * 1024]
"""10 MB without a line break."""


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize(
    "content",
    [b"a" * 1_000_000, b" " * 1_000_000, ("あ" * 1_000_000).encode(), b"\r\n" * 500_000, LINE.encode()],
    ids=["letters", "spaces", "kana", "line ends", "one line"],
)
def test_texts_made_to_hurt_come_back(content, tokenizer, file):
    if tokenizer == "tokenizer=bpe":
        assert texts(prepared(file(content), tokenizer, "tokenizer.vocab_size=260")) == content
    else:
        assert texts(prepared(file(content), tokenizer)) == content


def test_other_encodings_come_out_as_utf_8(file):
    text = "Grüße, naïve café. " * 200
    for encoding in ("latin-1", "utf-16", "utf-16-le", "cp1252"):
        path = file(text.encode(encoding))
        assert texts(prepared(path, f"dataset.encoding={encoding}", "tokenizer=byte")) == text.encode()


ROWS = [{"id": i, "body": f"the {i}th document, with a comma\r\nand two lines"} for i in range(100)]


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS).encode()),
        ("a.jsonl.gz", gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS).encode(), mtime=0)),
        ("a.csv", ("id,body\r\n" + "".join(f'{row["id"]},"{row["body"]}"\r\n' for row in ROWS)).encode()),
    ],
    ids=["jsonl", "jsonl.gz", "csv"],
)
def test_each_row_of_a_table_is_a_document(name, content, file):
    data = prepared(file(content, name), "dataset.column=body", "tokenizer=byte", "model.context=32")
    assert (data.train.counts.documents, data.validation.counts.documents) == (90, 10)
    ends = data.validation.tokens.tolist().index(256)
    assert data.tokenizer.decode(data.validation.tokens[:ends].tolist()) == ROWS[4]["body"]


RANDOM = random.Random(0).randbytes(100_000)


@pytest.mark.parametrize(
    "name, content, arguments, message",
    [
        ("a.txt", b"", [], "there is no text in it"),
        ("a.txt", b"\xef\xbb\xbf", [], "there is no text in it"),
        ("a.txt", b"x", [], "the train split has 0 tokens, where 512 are needed"),
        ("a.txt", b"x" * 300, ["dataset.validation_fraction=0.5"], "the train split has 151 tokens, where 512"),
        ("a.txt", b"x" * 1000, ["dataset.validation_fraction=0.01"], "the validation split has 11 tokens, where 257"),
        ("a.txt", b"x" * 1000, ["model.vocab_size=200"], "model.vocab_size: 200 is less than the tokenizer's 257"),
        (
            "a.txt",
            "Grüße".encode("latin-1") * 999,
            [],
            "no utf-8 text at byte 2 (fc: invalid start byte); set dataset.e",
        ),
        ("a.txt", "text".encode("utf-16") * 999, [], "set dataset.encoding=utf-16-le"),
        ("a.txt", RANDOM, [], "this seems to be no text; leave it out"),
        ("a.txt", "text".encode("utf-16"), ["dataset.encoding=utf-16", "tokenizer=char"], "the train split has"),
        ("a.txt", b"text", ["dataset.encoding=utf-17"], "dataset.encoding: 'utf-17' is no encoding of text; did you"),
        ("a.jsonl", b'{"body": "x"}\n', [], "there is no column 'text'; set dataset.column to one of body"),
        ("a.jsonl", b'{"text": 5}\n', [], "a.jsonl"),
        ("a.csv", b"body,title\nx,y\n", [], "there is no column 'text'; set dataset.column to one of body, title"),
        ("a.parquet", b"no parquet", [], "cannot be read"),
        ("a.gz", b"no gzip", [], "damaged, or not compressed by gzip"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_leaves_nothing(name, content, arguments, message, file):
    path = file(content, name)
    with pytest.raises(UserError) as error:
        prepared(path, "tokenizer=byte", *arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300 + len(str(path))
    left = path.parent.parent / "tokens"
    assert not left.exists() or list(left.iterdir()) == []


def test_an_edited_text_is_tokenized_anew(file):
    path = file(b"one text " * 400)
    first = prepared(path, "tokenizer=byte")
    stamp = path.stat()
    path.write_bytes(b"two text " * 400)
    assert path.stat().st_size == stamp.st_size
    second = prepared(path, "tokenizer=byte")
    assert texts(second).startswith(b"two text ")
    assert first.train.path != second.train.path
    path.write_bytes(b"one text " * 400)
    assert prepared(path, "tokenizer=byte").train.path == first.train.path


def test_no_column_of_text_and_a_column_by_name(tmp_path):
    if not CORPORA.exists():
        pytest.skip("needs ../shared/corpora beside the checkout")
    for name in ("overflow_i16_page_cnt", "delta_byte_array"):
        shutil.copy(CORPORA / "parquet" / f"{name}.parquet", tmp_path)
    with pytest.raises(UserError, match=r"no column holds text; there is only inc \(bool\)"):
        prepared(tmp_path / "overflow_i16_page_cnt.parquet", "tokenizer=byte")
    with pytest.raises(UserError, match=r"there is no column 'text'; set dataset.column to one of c_customer_id, c_"):
        prepared(tmp_path / "delta_byte_array.parquet", "tokenizer=byte")
    data = prepared(tmp_path / "delta_byte_array.parquet", "tokenizer=byte", "dataset.column=c_email_address")
    assert data.tokenizer.decode(data.train.tokens[:30].tolist()) == "Mark.Bailey@rg9qCNVJ0s7qeY.com"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout of one's own, so that what is left in its data/ and runs/ can be seen."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("gpt", "configs"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "train.py", copy)
    return copy


@pytest.mark.parametrize("content, code", [(b"\xff" * 5000, 2), (b"too short", 2), (b"enough text\r\n" * 500, 0)])
def test_from_the_command_line(content, code, checkout, file):
    command = [sys.executable, str(checkout / "train.py"), "dataset=text", "dataset.path=text.txt", "tokenizer=char"]
    small = ["model.n_layer=1", "model.context=32", "steps=2", "batch_size=2", "compile=off", "device=cpu"]
    done = subprocess.run(
        [*command, *small], cwd=file(content).parent, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == code, done.stderr
    if code:
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("error: ")
        assert not (checkout / "runs").exists()
        assert not (checkout / "data").exists() or list((checkout / "data").iterdir()) == []
    else:
        assert "1 file, 6,500 bytes; the last 10 % held out for validation" in done.stdout
        assert len(list((checkout / "runs").iterdir())) == 1
        shutil.rmtree(checkout / "runs")
        shutil.rmtree(checkout / "data")
