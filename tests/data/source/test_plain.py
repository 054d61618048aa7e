import codecs
import gzip
import itertools
import os
import re
import subprocess
import sys
from encodings.aliases import aliases
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.config import UserError
from gpt.data.source import plain
from gpt.data.source.plain import PlainText, begins_with_mark, codec_of, with_newlines

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\r\n\0\u2028\u0085\ufeff😀 a"))


@pytest.fixture
def small_blocks(monkeypatch):
    """Four bytes a block: characters, line ends and separators lie across."""
    monkeypatch.setattr(plain, "BLOCK", 4)


@pytest.fixture
def file(tmp_path):
    """Writes bytes to a file."""

    def write(content: bytes, name: str = "notes.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def read(path: Path, **how) -> list[str]:
    return ["".join(document) for document in PlainText(**how).documents(path)]


def refusal(path: Path, **how) -> str:
    with pytest.raises(UserError) as error:
        read(path, **how)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{path}: ")


def test_a_file_comes_back_as_it_is(file):
    text = "a\r\nb\rc\nd\u2028e\u0085f\0g \t\v\f\x1b 😀 日本語 no end of line"
    assert read(file(text.encode())) == [text]


def test_the_corpora_come_back_byte_for_byte():
    corpora = Path(__file__).parents[4] / "shared" / "corpora"
    files = [path for path in corpora.rglob("*") if path.suffix in (".txt", ".inp", ".out", ".md")]
    if not files:
        pytest.skip("needs ../shared/corpora")
    assert {"botchan_bom_crlf.txt", "wagahaiwa_nekodearu.txt", "blns.txt"} <= {path.name for path in files}
    for path in files:
        (text,) = read(path)
        assert text.encode() == path.read_bytes().removeprefix(codecs.BOM_UTF8)
        assert begins_with_mark(path, "utf-8") == (path.name == "botchan_bom_crlf.txt")


@settings(deadline=None)
@given(
    text=TEXT | TEXT.map("\ufeff{}".format),
    size=st.integers(4, 9),
    encoding=st.sampled_from(["utf-8", "utf-16-be", "utf-32"]),
)
def test_blocks_do_not_matter(tmp_path_factory, text, size, encoding):
    path = tmp_path_factory.mktemp("plain") / "text"
    path.write_bytes(text.encode(encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "BLOCK", size)
        kept = text if encoding == "utf-32" else text.removeprefix("\ufeff")  # its codec takes its own mark
        assert "".join(read(path, encoding=encoding)) == kept
        lf = io_universal(kept)
        assert "".join(read(path, encoding=encoding, newline="lf")) == lf
        assert read(path, encoding=encoding, separator="\n") == [line for line in kept.split("\n") if line]
        assert read(path, encoding=encoding, separator="\n", newline="lf") == [line for line in lf.split("\n") if line]


def io_universal(text: str) -> str:
    return re.sub("\r\n?", "\n", text)


def test_line_ends_are_kept_or_made_one():
    assert list(with_newlines(["a\r\nb\rc\n"], "keep")) == ["a\r\nb\rc\n"]
    assert (
        "".join(with_newlines(["a\r", "\nb\r", "\r", "c\u2028\u0085\v\f\n\r"], "lf")) == "a\nb\n\nc\u2028\u0085\v\f\n\n"
    )


@pytest.mark.parametrize(
    "separator, content, documents",
    [
        ("\n", "one\ntwo\n", ["one", "two"]),
        ("\n", "\n\none\n\n\ntwo", ["one", "two"]),
        ("\n\n", "a\nb\n\nc\n", ["a\nb", "c\n"]),
        ("\n\n", "a\n\n\nb", ["a", "\nb"]),
        ("\n", "a\r\nb", ["a\r", "b"]),
        ("<|endoftext|>", "once<|endoftext|>twice<|endoftext|>", ["once", "twice"]),
        ("<|endoftext|>", "<|endoftext|><|endoftext|", ["<|endoftext|"]),
        ("aab", "aaab", ["a"]),
        ("\n", "\n\n", []),
        (None, "\n\n", ["\n\n"]),
        (None, "", []),
    ],
)
def test_documents_stand_between_separators(file, small_blocks, separator, content, documents):
    assert read(file(content.encode()), separator=separator) == documents


def test_a_document_that_is_not_read_is_passed_over(file, small_blocks):
    path = file(b"a long first document\nsecond\na long third document\nfourth")
    documents = PlainText(separator="\n").documents(path)
    assert next(iter(next(documents))) == "a lo"
    second = next(documents)
    next(documents)
    assert list(second) == []
    assert "".join(next(documents)) == "fourth"
    assert list(documents) == []


@pytest.mark.parametrize(
    "encoding, mark",
    [
        ("utf-8", codecs.BOM_UTF8),
        ("UTF8", codecs.BOM_UTF8),
        ("utf-8-sig", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
    ],
)
def test_one_leading_mark_is_dropped_and_said(file, encoding, mark):
    name = codec_of(encoding)
    text = "\ufeffa\ufeff"  # these are no leading marks, and are text
    path = file(mark + text.encode(name))
    assert (read(path, encoding=encoding), begins_with_mark(path, encoding)) == ([text], True)
    bare = file("a\ufeff".encode(name))
    assert (read(bare, encoding=encoding), begins_with_mark(bare, encoding)) == (["a\ufeff"], False)
    assert read(file(mark), encoding=encoding) == []


def test_utf_16_finds_its_own_mark(file):
    for content in ("\ufeff日本\r\n".encode("utf-16-le"), "\ufeff日本\r\n".encode("utf-16-be")):
        assert read(file(content), encoding="utf-16") == ["日本\r\n"]
        assert not begins_with_mark(file(content), "utf-16")


def test_gzip_is_opened_by_name(file):
    content = gzip.compress("日本\r\n".encode(), mtime=0) + gzip.compress(b"two members", mtime=0)
    assert read(file(content, "a.txt.gz")) == read(file(content, "B.GZ")) == ["日本\r\ntwo members"]
    assert begins_with_mark(file(gzip.compress(codecs.BOM_UTF8, mtime=0), "b.gz"), "utf-8")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"ab\xffcd", "2 (ff: invalid start byte); set dataset.encoding to what it is in, cp1252 "),
        ("12345日".encode()[:-1], "5 (e6 97: unexpected end of data); set"),
        (b"1234567\xe6\x97x", "7 (e6 97: invalid continuation byte); set"),
        (codecs.BOM_UTF8 + b"abcdef\xc3", "9 (c3: unexpected end of data); set"),
        (codecs.BOM_UTF8[:2], "0 (ef bb: unexpected end of data); set"),
        ("\ufeffab".encode("utf-16-le"), "0 (ff: invalid start byte); set dataset.encoding=utf-16-le,"),
        ("\ufeffab".encode("utf-32-be"), "2 (fe: invalid start byte); set dataset.encoding=utf-32-be"),
        ("plain zwölf".encode("utf-16-le"), "16 (f6: invalid start byte); set dataset.encoding=utf-16-le"),
        ("plain zwölf".encode("utf-16-be"), "17 (f6: invalid start byte); set dataset.encoding=utf-16-be"),
        ("plain zwölf".encode("utf-32-le"), "32 (f6: invalid start byte); set dataset.encoding=utf-32-le"),
        (b"\x89PNG\r\n\x1a\n\0\0", "0 (89: invalid start byte); this is a picture; leave it out"),
        (b"%PDF-1.7\n%\xe2\xe3", "10 (e2: invalid continuation byte); this is a PDF document;"),
        (b"PK\x03\x04\x14\0\xff", "6 (ff: invalid start byte); this is a zip archive"),
        (gzip.compress(b"a", mtime=0), "1 (8b: invalid start byte); this is compressed by gzip: its name"),
        (bytes(range(256)), "128 (80: invalid start byte); this seems to be no text; leave it out"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_text_are_named_with_the_way_out(file, content, message):
    assert refusal(file(content)).startswith(f"no utf-8 text at byte {message}")


def test_an_encoding_is_not_proposed_to_those_who_have_it(file):
    half = file("plain".encode("utf-16-le") + b"\x00\xdc")  # half of a surrogate pair
    told = refusal(half, encoding="utf-16-le")
    assert told.startswith("no utf-16-le text at byte 10 (00 dc: ")
    assert "set dataset.encoding to what it is in" in told


@settings(deadline=None)
@given(content=st.binary(min_size=1, max_size=12) | TEXT.map(str.encode), size=st.integers(1, 9))
def test_the_offset_is_that_of_the_whole_file(tmp_path_factory, content, size):
    path = tmp_path_factory.mktemp("plain") / "text"
    path.write_bytes(b"ascii" + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "BLOCK", size)
        try:
            whole = path.read_bytes().decode()
        except UnicodeDecodeError as error:
            wrong = path.read_bytes()[error.start : error.end].hex(" ")
            told = f"no utf-8 text at byte {error.start} ({wrong}: {error.reason}); "
        else:
            told = None
        assert refusal(path).startswith(told) if told else read(path) == [whole]


@pytest.mark.parametrize(
    "encoding, content, message",
    [
        ("utf-16", "ab".encode("utf-16") + b"c", "no utf-16 text at byte 6 (63: truncated data); set"),
        (
            "utf-16-le",
            b"a\0\0\xdcb\0",
            "no utf-16-le text at byte 2 (00 dc: illegal encoding); set dataset.encoding to",
        ),
        ("shift_jis", b"abc\x82", "no shift_jis text at byte 3 (82: incomplete multibyte sequence); set"),
        ("ascii", "zwölf".encode(), "no ascii text at byte 2 (c3: ordinal not in range(128)); it reads as utf-8"),
        ("cp1252", b"abcdef\x81", "no cp1252 text at byte 6 (81: character maps to <undefined>); set"),
    ],
)
def test_other_encodings_are_as_strict(file, small_blocks, encoding, content, message):
    assert refusal(file(content), encoding=encoding).startswith(message)


def test_the_offset_is_exact_far_into_a_file(file):
    content = b"x" + "日本語\n".encode() * 300_000 + b"\xff"  # more than two blocks, whose ends are within characters
    assert f"at byte {len(content) - 1} (ff:" in refusal(file(content))
    assert f"at byte {len(content) - 1} (ff:" in refusal(file(gzip.compress(content, 1, mtime=0), "a.gz"))


def test_what_is_no_text_can_be_replaced(file, small_blocks):
    assert read(file(b"ab\xffcd\xe6\x97"), errors="replace") == ["ab\ufffdcd\ufffd"]
    assert read(file(b"zw\xf6lf"), encoding="latin-1") == ["zwölf"]


@pytest.mark.parametrize(
    "content", [b"plain", gzip.compress(b"whole " * 99, mtime=0)[:-9], gzip.compress(b"x", mtime=0)[:-1] + b"?"]
)
def test_a_damaged_gzip_is_told(file, content):
    assert re.match(r"damaged, or not compressed by gzip \(.+\); compress it anew$", refusal(file(content, "a.gz")))


def test_a_file_that_vanished_or_is_a_folder_is_told(tmp_path):
    assert refusal(tmp_path / "gone") == "cannot be read: No such file or directory; mend that, or leave it out"
    assert refusal(tmp_path) == "cannot be read: Is a directory; mend that, or leave it out"


@pytest.mark.parametrize(
    "name", ["hex", "base64", "rot13", "zlib", "utf-7", "unicode_escape", "idna", "undefined", "", "\0", "é"]
)
def test_what_is_no_encoding_of_text_is_refused(name):
    with pytest.raises(ValueError, match=r"is no encoding of text; .*take utf-8, utf-16, latin-1 or another$"):
        codec_of(name)


@pytest.mark.parametrize("wrong, right", [("utf9", "utf-8"), ("cp1250x", "cp1250"), ("shiftjs", "shift-jis")])
def test_the_nearest_encoding_is_named(wrong, right):
    with pytest.raises(ValueError, match=f"did you mean {right}\\?"):
        codec_of(wrong)


def test_no_encoding_gives_half_of_a_surrogate_pair(file):
    pairs = [bytes(pair) for pair in itertools.product(range(256), repeat=2)]
    tried = [
        *pairs,
        b"\\ud800",
        b"+2AA-",
        "\ud800".encode("utf-8", "surrogatepass"),
        "\ud800".encode("utf-32", "surrogatepass"),
    ]
    accepted = []
    for name in sorted({*aliases.values(), "punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf_8_sig"}):
        try:
            accepted.append(codec_of(name))
        except ValueError:
            continue
        for content in tried:
            content.decode(name, errors="replace").encode()
    assert len(accepted) > 80


def test_the_locale_does_not_matter(file):
    path = file("日本語 😀\r\n".encode())
    code = (
        "import sys; from pathlib import Path; from gpt.data.source.plain import PlainText; "
        "print([ascii(''.join(d)) for d in PlainText().documents(Path(sys.argv[1]))])"
    )
    plain_c = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True, env=plain_c)
    assert done.stdout == f"{[ascii('日本語 😀' + chr(13) + chr(10))]}\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("separator", [None, "\n"])
def test_memory_does_not_grow_with_the_file(tmp_path, separator):
    """One line of 5 MB, or 50: ten times the file within 1 MB more memory at the peak."""
    code = (
        "import sys; from pathlib import Path; from gpt.data.source.plain import PlainText\n"
        f"for d in PlainText(separator={separator!r}).documents(Path(sys.argv[1])): print(sum(map(len, d)))\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    peaks = []
    for million in (5, 50):
        path = tmp_path / str(million)
        with path.open("wb") as file:
            for _ in range(million):
                file.write("日a".encode() * 250_000)
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
        length, peak = map(int, done.stdout.split())
        assert length == million * 500_000
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 1024


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_text_without_a_mark_is_not_taken_for_utf_8(file, encoding):
    content = ("plain text\r\n" * 20).encode(encoding)
    message = refusal(file(content))
    assert message == f"many bytes are zero, so this is no utf-8; set dataset.encoding={encoding}"
    assert read(file(content), encoding=encoding) == ["plain text\r\n" * 20]
    assert read(file(b"\0" * 500)) == ["\0" * 500], "zeros alone are what they are"
    assert read(file(b"a\0b\0")) == ["a\0b\0"], "a few zeros may be meant"


def test_utf_16_by_its_mark_alone_needs_one(file):
    content = ("plain text\r\n" * 20).encode("utf-16-le")
    message = refusal(file(content), encoding="utf-16")
    assert message.endswith("UTF-16 stream does not start with BOM; set dataset.encoding=utf-16-le")
