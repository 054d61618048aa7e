import codecs
import gzip
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gpt.cli import compose
from gpt.config import ROOT, Choice, UserError
from gpt.training.settings import TrainSettings

DATASET = Choice("gpt.data.dataset", "dataset")
CORPORA = ROOT.parent / "shared" / "corpora"

corpora = pytest.mark.skipif(not CORPORA.exists(), reason="needs ../shared/corpora")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which the shell is in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def build(path, **settings):
    return DATASET.validate({"name": "text", "path": str(path), **settings}).build()


def read(dataset, split="train") -> list[str]:
    return ["".join(document) for document in dataset.documents(split)]


def splits(path, **settings) -> tuple[list[str], list[str]]:
    dataset = build(path, **settings)
    return read(dataset), read(dataset, "validation")


def everything(path, **settings) -> list[str]:
    train, validation = splits(path, validation_fraction=0, **settings)
    assert validation == []
    return train


def refusal(path, **settings) -> str:
    """What `build` says."""
    with pytest.raises(UserError) as error:
        build(path, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


def complaint(path, **settings) -> str:
    """What is said while reading."""
    dataset = build(path, **settings)
    with pytest.raises(UserError) as error:
        read(dataset)
    assert "\n" not in str(error.value)
    return str(error.value)


def write(*files: str) -> None:
    """Files whose text is their own name."""
    for name in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        content = name.encode()
        Path(name).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def test_a_file_is_one_document_whatever_its_name(here):
    write("notes", "a.rst", "b.txt.gz", "c[1].txt", ".hidden.txt")
    for name in ("notes", "a.rst", "b.txt.gz", "c[1].txt", ".hidden.txt"):
        assert everything(name) == [name]


def test_a_folder_is_all_its_text_sorted(here):
    write(
        "f/b.txt",
        "f/a/z.md",
        "f/a.TXT",
        "f/c.txt.gz",
        "f/x.py",
        "f/x.parquet.gz",
        "f/.a.txt",
        "f/.git/a.txt",
        "f/a/b/c.md",
    )
    Path("f/d.jsonl").write_text('{"text": "a row"}\n{"text": "another"}\n')
    assert everything("f") == ["f/a.TXT", "f/a/b/c.md", "f/a/z.md", "f/b.txt", "f/c.txt.gz", "a row", "another"]


def test_a_glob_is_what_it_matches_sorted(here):
    write("f/b.txt", "f/a.rst", "f/g/c.rst", "f/.g/d.rst", "f/.e.rst", "f [1]/h.rst")
    assert everything("f/*") == ["f/a.rst", "f/b.txt"]
    assert everything("f/**/*.rst") == ["f/a.rst", "f/g/c.rst"]
    assert everything("f/**") == ["f/a.rst", "f/b.txt", "f/g/c.rst"]
    assert everything("f/[ab].*t") == ["f/a.rst", "f/b.txt"]
    assert everything("f/.g/*.rst") == ["f/.g/d.rst"]
    assert everything("f/.*.rst") == ["f/.e.rst"]
    assert everything("f [1]/*.rst") == ["f [1]/h.rst"]


def test_links_are_followed_to_files_and_not_around_in_circles(here):
    write("f/a.txt", "b.txt")
    Path("f/b.txt").symlink_to(here / "b.txt")
    for name in ("up", "up2"):
        Path("f", name).symlink_to(here / "f")
    Path("f/dangling.txt").symlink_to("nowhere")
    Path("f/self.txt").symlink_to("self.txt")
    assert everything("f") == everything("f/**") == ["f/a.txt", "b.txt"]
    assert refusal("f/self.txt").startswith(f"dataset.path: there is no {here}/f/self.txt; ")


def test_paths_become_absolute_where_they_are_typed(here, monkeypatch):
    settings, _ = compose(
        "train", ["dataset=text", "dataset.path=a, (b)/日本語=1.txt", "dataset.validation_path=~/v.txt"], TrainSettings
    )
    assert settings.dataset.path == str(here / "a, (b)" / "日本語=1.txt")
    assert settings.dataset.validation_path == str(Path.home() / "v.txt")
    monkeypatch.chdir("/")
    again = DATASET.validate(settings.dataset.model_dump())
    assert again == settings.dataset


def test_a_path_is_required():
    with pytest.raises(UserError, match=r"^dataset\.path: this setting is required"):
        compose("train", ["dataset=text"], TrainSettings)


@pytest.mark.parametrize(
    "path, message",
    [
        ("", "dataset.path: expected a file, a folder or a glob, got nothing"),
        (
            "note.txt",
            "dataset.path: there is no HERE/note.txt; did you mean HERE/notes.txt? name a file, a folder or a glob",
        ),
        ("flder/notes.txt", "dataset.path: there is no HERE/flder/notes.txt; did you mean HERE/folder? name"),
        ("notes.txt/x", "dataset.path: there is no HERE/notes.txt/x; name"),
        ("zzz", "dataset.path: there is no HERE/zzz; name"),
        ("~nobody-of-this-name/x", "dataset.path: there is no HERE/~nobody-of-this-name/x; name"),
        ("folder", "dataset.path: HERE/folder is a folder without text; name"),
        ("folder/*.txt", "dataset.path: no file matches HERE/folder/*.txt; name"),
        ("fold**/x", "dataset.path: "),
        ("/dev/zero", "dataset.path: /dev/zero is a device, a pipe or a socket; name"),
        ("pipe", "dataset.path: HERE/pipe is a device, a pipe or a socket; name"),
        ("socket", "dataset.path: HERE/socket is a device, a pipe or a socket; name"),
        ("x" * 300, "dataset.path: HERE/" + "x" * 300 + " cannot be read: File name too long; mend that"),
        ("a\0b", r"dataset.path: there is no HERE/a\x00b; name"),
    ],
)
def test_what_is_not_there_is_one_line(here, path, message):
    write("notes.txt", "folder/notes.py")
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind("socket")
        assert refusal(path).startswith(message.replace("HERE", str(here)))


def test_what_may_not_be_read_is_one_line(here):
    write("a.txt", "f/g/b.txt")
    Path("a.txt").chmod(0)
    Path("f/g").chmod(0)
    if os.access("a.txt", os.R_OK):
        pytest.skip("root may read everything")
    assert complaint("a.txt") == f"{here}/a.txt: cannot be read: Permission denied; mend that, or leave it out"
    assert refusal("f").startswith(f"dataset.path: {here}/f cannot be read: Permission denied")
    assert refusal("f/g/b.txt").startswith(f"dataset.path: {here}/f/g/b.txt cannot be read: Permission denied")
    Path("f/g").chmod(0o700)


def test_text_without_text_is_one_line(here):
    Path("f").mkdir()
    for name, content in {"empty.txt": b"", "mark.txt": codecs.BOM_UTF8, "rows.jsonl": b'{"text": ""}\n'}.items():
        Path("f", name).write_bytes(content)
        message = f"{here}/f/{name}: there is no text in it; name a file that has some"
        for how in ({}, {"validation_fraction": 0}, {"holdout": "document"}, {"holdout": "tail"}):
            assert complaint(f"f/{name}", **how) == message
    assert complaint("f").startswith(f"{here}/f: there is no text in it")
    write("a.txt")
    dataset = build("a.txt", validation_path="f/empty.txt")
    assert read(dataset) == ["a.txt"]
    with pytest.raises(UserError, match=r"/f/empty\.txt: there is no text in it"):
        read(dataset, "validation")


def test_files_that_vanish_are_one_line(here):
    write("a.txt", "b.txt")
    dataset = build("*.txt")
    Path("b.txt").unlink()
    for use in (lambda: read(dataset), dataset.fingerprint, dataset.describe, lambda: dataset.size("train")):
        with pytest.raises(UserError, match=r"b\.txt: cannot be read: No such file or directory; mend that"):
            use()


def test_one_character_is_text(here):
    Path("a.txt").write_text("a")
    assert splits("a.txt") == ([], ["a"])
    assert splits("a.txt", validation_fraction=0) == (["a"], [])


def test_few_documents_are_held_out_by_tail(here):
    Path("lines.txt").write_text("".join(f"document {i:02}\n" for i in range(19)))
    train, validation = splits("lines.txt", separator="\n")
    assert len(train) == 18
    assert train[-1] == "d"  # of 19 times 11 characters, 188 are for training
    assert validation == ["ocument 17", "document 18"]
    text = Path("lines.txt").read_text()
    assert splits("lines.txt") == ([text[:205]], [text[205:]])  # of 228


def test_twenty_documents_are_held_out_whole(here):
    lines = [f"line {i:02}" for i in range(20)]
    Path("lines.txt").write_text("\n".join(lines))
    assert splits("lines.txt", separator="\n")[1] == [lines[4], lines[14]]
    write(*(f"f/{i:02}.txt" for i in range(20)))
    assert splits("f")[1] == ["f/04.txt", "f/14.txt"]
    assert splits("f", validation_fraction=0.25)[1] == [f"f/{i:02}.txt" for i in (1, 5, 9, 13, 17)]


def test_how_it_is_held_out_can_be_told(here):
    write("f/a.txt", "f/b.txt", "f/c.txt", "f/d.txt")
    assert splits("f", holdout="document", validation_fraction=0.5) == (["f/b.txt", "f/d.txt"], ["f/a.txt", "f/c.txt"])
    assert splits("f", holdout="tail", validation_fraction=0.5) == (["f/a.txt", "f/b.txt"], ["f/c.txt", "f/d.txt"])
    write(*(f"g/{i:02}.txt" for i in range(20)))
    assert splits("g", holdout="tail")[1] == ["g/18.txt", "g/19.txt"]


def test_validation_has_files_of_its_own(here):
    write("t/a.txt", "t/b.txt", "v/c.txt")
    assert splits("t", validation_path="v/*.txt") == (["t/a.txt", "t/b.txt"], ["v/c.txt"])
    Path("link.txt").symlink_to("t/b.txt")
    for same in ("t/b.txt", "t", "link.txt", "t/../t/b.txt"):
        assert refusal("t", validation_path=same).startswith(f"dataset.validation_path: {here}/t/")
        assert refusal("t", validation_path=same).endswith("is in dataset.path too; take it out of one of them")
    assert refusal("link.txt", validation_path="t").startswith(f"dataset.validation_path: {here}/t/b.txt is in")
    assert refusal("t", validation_path="w").startswith("dataset.validation_path: there is no")
    assert (
        refusal("t", validation_path="") == "dataset.validation_path: expected a file, a folder or a glob, got nothing"
    )


def test_rows_of_tables_are_documents(here):
    Path("f").mkdir()
    Path("f/a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "one\\r\\n"}\n{"text": null}\n{"text": ""}\n', mtime=0))
    Path("f/b.csv").write_bytes(b'id,text\n1,"two\r\n2"\n')
    Path("f/c.txt").write_bytes(b"three\r\n")
    Path("f/d.tsv").write_bytes(b"text\tid\nfour\t1\n")
    assert everything("f") == ["one\r\n", "two\r\n2", "three\r\n", "four"]
    assert everything("f", newline="lf") == ["one\n", "two\n2", "three\n", "four"]
    assert everything("f", separator="e")[2:4] == ["thr", "\r\n"]
    assert everything("f/b.csv", column="id") == ["1"]
    assert complaint("f/b.csv", column="body").endswith("set dataset.column to one of id, text")


def test_encoding_errors_line_ends_and_separators(here):
    Path("a.txt").write_bytes("zwölf\r\n<|endoftext|>日本".encode("utf-16"))
    assert everything("a.txt", encoding="utf-16", newline="lf", separator="<|endoftext|>") == ["zwölf\n", "日本"]
    assert "set dataset.encoding=utf-16-le" in complaint("a.txt")
    Path("b.txt").write_bytes("zwölf".encode("latin-1"))
    assert everything("b.txt", errors="replace") == ["zw\ufffdlf"]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"encoding": "utf-88"}, "dataset.encoding: 'utf-88' is no encoding of text; did you mean utf-8? take"),
        ({"encoding": "rot13"}, "dataset.encoding: 'rot13' is no encoding of text; "),
        ({"errors": "ignore"}, "dataset.errors: expected 'error' or 'replace', got 'ignore'"),
        ({"newline": "crlf"}, "dataset.newline: expected 'keep' or 'lf', got 'crlf'"),
        ({"holdout": "head"}, "dataset.holdout: expected 'auto', 'document' or 'tail', got 'head'"),
        ({"validation_fraction": 1.0}, "dataset.validation_fraction: expected less than 1, got 1.0"),
        ({"validation_fraction": -0.1}, "dataset.validation_fraction: expected greater than or equal to 0"),
        ({"separator": ""}, "dataset.separator: expected "),
        ({"colum": "text"}, "dataset.colum: there is no such setting; did you mean dataset.column?"),
    ],
)
def test_wrong_settings_are_named(here, settings, message):
    write("a.txt")
    assert refusal("a.txt", **settings).startswith(message)


def test_the_fingerprint_is_of_text_and_settings_not_of_names_and_times(here):
    write("f/a.txt", "f/b.txt", "v.txt")
    first = build("f").fingerprint()
    os.utime("f/a.txt", (1, 1))
    Path("f/b.txt").rename("f/c.md")
    Path("f").rename("g")
    assert build("g").fingerprint() == build("g/*").fingerprint() == first
    different = [
        {"validation_path": "v.txt"}, {"validation_fraction": 0.2}, {"holdout": "tail"}, {"column": "body"},
        {"encoding": "latin-1"}, {"errors": "replace"}, {"newline": "lf"}, {"separator": "\n"},
    ]  # fmt: skip
    prints = {first, *(build("g", **settings).fingerprint() for settings in different)}
    assert len(prints) == len(different) + 1
    Path("g/a.txt").rename("g/d.txt")  # another order
    assert build("g").fingerprint() not in prints
    Path("g/d.txt").rename("g/a.txt")
    Path("g/a.txt").write_bytes(b"f/A.txt")
    assert build("g").fingerprint() not in prints
    write("v.csv", "v2")
    Path("v2").write_bytes(b"v.csv")
    assert build("v.csv").fingerprint() != build("v2").fingerprint()  # a table is read in another way


def test_two_files_are_not_one_of_both_texts(here):
    for name, content in {"a/1.txt": "ab", "a/2.txt": "c", "b/1.txt": "a", "b/2.txt": "bc"}.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(content)
    assert build("a").fingerprint() != build("b").fingerprint()
    moved = build("a/1.txt", validation_path="a/2.txt").fingerprint()
    assert moved not in {build("a").fingerprint(), build("a/2.txt", validation_path="a/1.txt").fingerprint()}


def test_the_size_is_that_of_the_files(here):
    Path("a.txt").write_bytes(b"x" * 1000)
    Path("b.txt").write_bytes(b"x" * 50)
    write("c.txt.gz", "d.parquet")

    def sizes(path, **settings):
        return [build(path, **settings).size(split) for split in ("train", "validation")]

    assert sizes("a.txt") == [900, 100]
    assert sizes("a.txt", validation_fraction=0) == [1000, 0]
    assert sizes("a.txt", validation_path="b.txt") == [1000, 50]
    assert sizes("[abc].*") == sizes("d.parquet") == [None, None]


def test_the_description_tells_files_size_and_validation(here):
    Path("a.txt").write_bytes(codecs.BOM_UTF8 + b"x" * 1_234_567)
    write("f/b.txt", "f/c.txt")
    mark = "; a leading byte order mark dropped"
    assert build("a.txt").describe() == f"1 file, 1.2 MB; the last 10 % held out for validation{mark}"
    assert (
        build("f", validation_path="a.txt").describe()
        == f"2 files, 14 bytes; validation has 1 file, 1.2 MB{mark} from 1 of them"
    )
    assert build("f", validation_fraction=0).describe() == "2 files, 14 bytes; nothing held out for validation"
    documents = build("f", holdout="document", validation_fraction=0.07)
    assert documents.describe() == "2 files, 14 bytes; 7 % of the documents held out for validation"


def test_documents_can_be_read_again(here):
    Path("a.jsonl").write_text("".join(json.dumps({"text": f"row {i}"}) + "\n" for i in range(30)))
    dataset = build("a.jsonl")
    assert read(dataset) == read(dataset)
    assert read(dataset, "validation") == ["row 4", "row 14", "row 24"]


@corpora
def test_the_corpora_come_back_byte_for_byte():
    for file in sorted(CORPORA.glob("*.txt")):
        train, validation = splits(file)
        text = "".join(train + validation)
        assert text.encode() == file.read_bytes().removeprefix(codecs.BOM_UTF8)
        assert len("".join(train)) == int(len(text) * 0.9)
    assert "mark dropped" in build(CORPORA / "botchan_bom_crlf.txt").describe()
    assert "mark" not in build(CORPORA / "wagahaiwa_nekodearu.txt").describe()


@corpora
def test_names_are_32033_documents():
    train, validation = splits(CORPORA / "names.txt", separator="\n")
    assert (len(train), len(validation)) == (32_033 - 3_203, 3_203)
    assert validation[:2] == CORPORA.joinpath("names.txt").read_text().split("\n")[4:15:10]


@corpora
def test_tiny_shakespeare_is_split_as_nanogpt_does():
    train, validation = splits(CORPORA / "tinyshakespeare.txt")
    assert (len(train[0]), len(validation[0])) == (1_003_854, 111_540)


def test_plain_text_does_not_wait_for_the_library_of_tables(here):
    write("a.txt")
    code = (
        "import sys; from gpt.data.dataset.text import TextConfig; d = TextConfig(path='a.txt').build(); d.describe(); "
        "print(sum(1 for _ in d.documents('train')), 'datasets' in sys.modules, 'pandas' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "1 False False\n"
