import gzip
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest
from pyarrow import parquet

from gpt.config import Choice, UserError
from gpt.data.dataset import hub
from gpt.data.dataset.hub import HubConfig, hold_out

DATASET = Choice("gpt.data.dataset", "dataset")

README = """---
configs:
- config_name: tales
  data_files:
  - {split: train, path: tales/train.parquet}
  - {split: validation, path: tales/validation.parquet}
- config_name: short
  data_files:
  - {split: train, path: tales/validation.parquet}
---
"""

TALES = [f"tale {i}\r\n" for i in range(20)]
ODD = ["007", "NA", "2024-01-01", "a\r\nb", *map(str, range(16))]


def build(path, **settings):
    return DATASET.validate({"name": "hub", "path": str(path), **settings}).build()


def read(dataset, split) -> list[str]:
    return ["".join(document) for document in dataset.documents(split)]


def refused(path, part="train", **settings) -> str:
    with pytest.raises(UserError) as error:
        read(build(path, **settings), part)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def folder(tmp_path):
    """A data set on disk as it would be on the Hub."""
    folder = tmp_path / "a set"
    (folder / "tales").mkdir(parents=True)
    (folder / "README.md").write_text(README)
    table = pa.table({"id": range(20), "text": TALES, "body": ["other"] * 20})
    parquet.write_table(table, folder / "tales" / "train.parquet", row_group_size=6)
    parquet.write_table(table.slice(0, 2), folder / "tales" / "validation.parquet")
    return folder


def csv_of(values: list[str], sep: str) -> bytes:
    return "".join([f"id{sep}text\n", *(f'{i}{sep}"{text}"\n' for i, text in enumerate(values))]).encode()


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of the folder `served`, at `url`; what is fetched goes to the folder `downloads`."""
    (tmp_path / "served").mkdir()
    monkeypatch.setattr(hub, "DOWNLOADS", tmp_path / "downloads")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("streaming", [True, False])
def test_a_folder_laid_out_as_a_data_set(folder, streaming, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    dataset = build(folder, config="tales", validation_split="validation", streaming=streaming)
    assert read(dataset, "train") == TALES
    assert read(dataset, "validation") == TALES[:2]
    assert read(dataset, "train") == TALES
    assert read(build(folder, config="tales", validation_documents=0, streaming=streaming), "train") == TALES


@pytest.mark.parametrize("name, content, readme", [
    ("lines.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in [*ODD, "", None]).encode(), ""),
    ("array.json", json.dumps([{"text": text} for text in ODD]).encode(), ""),
    ("field.json", json.dumps({"data": [{"text": text} for text in ODD]}).encode(), "field: data"),
    ("table.csv", csv_of(ODD, ","), ""),
    ("table.csv", csv_of(ODD, ";"), 'sep: ";"'),
    ("table.csv", csv_of(ODD, ";"), ""),
    ("table.csv.gz", gzip.compress(csv_of(ODD, ","), mtime=0), ""),
])  # fmt: skip
@pytest.mark.parametrize("streaming", [True, False])
def test_text_that_looks_like_something_else_stays_text(tmp_path, name, content, readme, streaming, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / name).write_bytes(content)
    head = f"- config_name: default\n  data_files: {name}\n  {readme}\n"
    (tmp_path / "set" / "README.md").write_text(f"---\nconfigs:\n{head}---\n")
    assert read(build(tmp_path / "set", streaming=streaming, validation_documents=0), "train") == ODD


def test_the_lines_of_plain_text_are_rows(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    assert read(build(tmp_path, validation_documents=1), "train") == ["two"]


@pytest.mark.parametrize("streaming", [True, False])
def test_joined_lines_of_plain_text_give_the_text_back(tmp_path, streaming, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.txt").write_bytes(b"one\n\n two\r\nlast")
    settings = {"validation_documents": 0, "streaming": streaming}
    assert read(build(tmp_path / "set", joined=True, **settings), "train") == ["one\n\n two\nlast"]
    assert read(build(tmp_path / "set", **settings), "train") == ["one", " two", "last"]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("content, said", [
    (b"id,text\n1,a,b\n", "its first row has more fields than its header; mend it, or quote what holds a comma"),
    (b"text,text\na,b\n", "2 columns are called 'text'; rename all but one of them"),
])  # fmt: skip
def test_a_csv_of_which_no_column_is_sure(tmp_path, streaming, content, said, monkeypatch):
    """The other file is the first, and as it should be."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.csv").write_bytes(b"id,text\n1,a\n")
    (tmp_path / "set" / "b.csv").write_bytes(content)
    assert refused(tmp_path / "set", streaming=streaming, validation_documents=0) == f"{tmp_path}/set/b.csv: {said}"


def test_no_file_of_a_folder_is_lost(tmp_path):
    for name in ("a.jsonl", "b.ndjson", "c.txt", "d e.md", "f.csv"):
        (tmp_path / name).write_text('{"text": "x"}\n')
    for name in ("README.md", "LICENSE", "LICENSE.txt", "dataset_infos.json", ".gitattributes", "i.png", ".hidden.csv"):
        (tmp_path / name).write_text("{}")
    do = "read all with dataset=text, or name data_files in the folder's README.md"
    assert refused(tmp_path) == f"{tmp_path}: these files would be ignored: c.txt, d e.md, f.csv; {do}"
    for name in ("c.txt", "d e.md", "f.csv"):
        (tmp_path / name).unlink()
    assert read(build(tmp_path, validation_documents=0), "train") == ["x", "x"]
    (tmp_path / "train.jsonl").write_text('{"text": "y"}\n')  # the library takes it alone, for its name
    assert refused(tmp_path) == f"{tmp_path}: these files would be ignored: a.jsonl, b.ndjson; {do}"
    (tmp_path / "README.md").write_text("---\nconfigs:\n- {config_name: one, data_files: a.jsonl}\n---\n")
    assert read(build(tmp_path, validation_documents=0), "train") == ["x"]


def test_a_link_to_a_folder_of_links(tmp_path):
    for name in ("files", "set"):
        (tmp_path / name).mkdir()
    (tmp_path / "files" / "blob").write_text('{"text": "x"}\n')
    (tmp_path / "set" / "a.jsonl").symlink_to(tmp_path / "files" / "blob")
    (tmp_path / "link").symlink_to(tmp_path / "set")
    assert read(build(tmp_path / "link", validation_documents=0), "train") == ["x"]


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
@pytest.mark.parametrize("streaming", [True, False])
def test_the_encoding_of_a_folder(tmp_path, name, streaming, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "set").mkdir()
    content = {"a.txt": "déjà", "a.csv": "text\ndéjà\n", "a.jsonl": '{"text": "déjà"}\n'}[name]
    (tmp_path / "set" / name).write_bytes(content.encode("latin-1"))
    settings = {"validation_documents": 0, "streaming": streaming}
    assert read(build(tmp_path / "set", encoding="latin-1", **settings), "train") == ["déjà"]
    assert read(build(tmp_path / "set", errors="replace", **settings), "train") == ["d\ufffdj\ufffd"]
    assert "utf-8" in refused(tmp_path / "set", **settings)


def test_a_broken_file_that_is_downloaded_tells_its_cause(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.csv").write_bytes(b"text\n1\n1,2\n")
    assert "Expected 1 fields in line 3, saw 2" in refused(tmp_path / "set", streaming=False)


def test_the_first_documents_are_held_out(folder):
    dataset = build(folder, config="tales", validation_documents=3)
    assert read(dataset, "validation") == TALES[:3]
    assert read(dataset, "train") == TALES[3:]
    assert read(build(folder, config="tales", validation_documents=0), "validation") == []


def test_joined_rows_are_one_document(folder):
    dataset = build(folder, config="tales", validation_documents=3, joined=True)
    assert read(dataset, "validation") == ["".join(TALES[:3])]
    assert read(dataset, "train") == ["".join(TALES[3:])]
    assert read(build(folder, config="tales", validation_documents=0, joined=True), "validation") == []


def test_at_least_as_much_is_left_as_is_held_out(folder):
    assert read(build(folder, config="tales", validation_documents=10), "train") == TALES[10:]
    for split in ("train", "validation"):
        assert list(hold_out(TALES, 10, split, "p")) == (TALES[10:] if split == "train" else TALES[:10])
    assert refused(folder, config="tales", validation_documents=11) == (
        f"{folder}: there are only 20 documents with text, and 11 would be held out; "
        "set dataset.validation_documents to 2, or dataset.validation_split"
    )
    assert "only 20 documents" in refused(folder, "validation", config="tales", validation_documents=21)


def test_validation_reads_no_more_than_it_holds_out():
    def texts():
        yield from TALES[:3]
        raise AssertionError("read too far")

    assert list(hold_out(texts(), 2, "validation", "p")) == TALES[:2]


def test_rows_without_text_are_no_documents(tmp_path):
    for split in ("train", "validation"):
        rows = [f"{split} 1", "", None, f"{split} 2"]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    for settings, found in (
        ({"validation_split": "validation"}, [["train 1", "train 2"], ["validation 1", "validation 2"]]),
        ({"validation_documents": 1}, [["train 2"], ["train 1"]]),
    ):
        dataset = build(tmp_path, **settings)
        assert [read(dataset, split) for split in ("train", "validation")] == found


def test_a_slice_of_what_is_downloaded(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    settings = {"config": "tales", "split": "train[:50%]", "validation_split": "train[50%:]"}
    assert read(build(folder, streaming=False, **settings), "validation") == TALES[10:]
    assert "there is no split 'train[:50%]'; set dataset.split to one of train, validation" in refused(
        folder, **{**settings, "validation_split": None}
    )


@pytest.mark.parametrize("settings, said", [
    ({}, "there are several configs; set dataset.config to one of tales, short"),
    ({"config": "x"}, "there is no config 'x'; set dataset.config to one of tales, short"),
    ({"config": "tales", "split": "x"}, "there is no split 'x'; set dataset.split to one of train, validation"),
    ({"config": "tales", "validation_split": "x"},
     "there is no split 'x'; set dataset.validation_split to one of train, validation"),
])  # fmt: skip
def test_what_the_data_set_does_not_have(folder, settings, said):
    with pytest.raises(UserError) as error:
        read(build(folder, **settings), "validation" if "validation_split" in settings else "train")
    assert str(error.value) == f"{folder}: {said}"


def test_a_column_of_a_table_is_told_with_its_file(folder):
    path = folder / "tales" / "train.parquet"
    said = f"{path}: there is no column 'x'; set dataset.column to one of text, body"
    assert refused(folder, config="tales", column="x") == said
    assert f"{path}: column 'id' holds int64, not text" in refused(folder, config="tales", column="id")


@pytest.mark.parametrize("settings, said", [
    ({"path": ""}, "dataset.path: expected user/name, a folder, or a URL of https, http or hf, got ''"),
    ({"path": "s3://a/b"}, "dataset.path: expected user/name, a folder, or a URL of https, http or hf, got 's3://a/b'"),
    ({"path": "http://[::1"}, "dataset.path: 'http://[::1' is no URL: Invalid IPv6 URL"),
    ({"path": "a/b", "encoding": "utf8x"}, "dataset.encoding: 'utf8x' is no encoding of text; "),
    ({"path": "https://a/b.txt", "split": "test"}, "dataset: a URL has no config, split, validation_split or revis"),
    ({"path": "a/b", "validation_split": "train"}, "dataset: split and validation_split are both train; "),
    ({"path": "a/b/c"}, "dataset.path: there is no folder a/b/c; a data set of the Hub is named user/name"),
    ({"path": "/nowhere"}, "dataset.path: there is no folder /nowhere; "),
    ({"path": __file__}, f"dataset.path: {__file__} is a file; read it with: dataset=text dataset.path={__file__}"),
])  # fmt: skip
def test_settings_that_cannot_be(settings, said):
    with pytest.raises(UserError) as error:
        build(**settings)
    assert str(error.value).startswith(said)


def test_a_folder_means_the_same_from_anywhere(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert HubConfig(path="a set").path == str(folder)
    assert HubConfig(path="user/name").path == "user/name"


@pytest.mark.parametrize("name, content", [
    ("a.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in ODD).encode()),
    ("a.csv.gz", gzip.compress(b"text\n" + b"".join(f'"{text}"\n'.encode() for text in ODD), mtime=0)),
])  # fmt: skip
def test_a_table_behind_a_url(server, tmp_path, name, content):
    (tmp_path / "served" / name).write_bytes(content)
    dataset = build(f"{server.url}/{name}", validation_documents=2)
    assert not (tmp_path / "downloads").exists()
    assert read(dataset, "validation") == ODD[:2]
    server.shutdown()
    assert read(dataset, "train") == ODD[2:]


def test_parquet_behind_a_url(server, tmp_path):
    parquet.write_table(pa.table({"story": TALES}), tmp_path / "served" / "a.parquet")
    assert read(build(f"{server.url}/a.parquet?x=1", column="story", validation_documents=0), "train") == TALES
    assert "there is no column 'text'; set dataset.column to one of story" in refused(f"{server.url}/a.parquet")


def test_plain_text_behind_a_url(server, tmp_path):
    text = "".join(f"line {i}\r\n" for i in range(100))
    (tmp_path / "served" / "input.txt").write_bytes(text.encode())
    dataset = build(f"{server.url}/input.txt")
    assert dataset.size("train") is None
    assert not (tmp_path / "downloads").exists()
    train, validation = read(dataset, "train"), read(dataset, "validation")
    assert "".join(train + validation) == text
    assert 80 < len("".join(validation)) < 120
    server.shutdown()
    assert read(build(f"{server.url}/input.txt", validation_documents=0), "train") == [text]
    assert dataset.size("train") == len(text)


def test_what_is_fetched_has_an_encoding(server, tmp_path):
    for name, content in (("a.txt", "déjà"), ("a.jsonl", '{"text": "déjà"}')):
        (tmp_path / "served" / name).write_bytes(content.encode("latin-1"))
        url = f"{server.url}/{name}".replace("http", "HTTP")
        assert read(build(url, encoding="latin-1", validation_documents=0), "train") == ["déjà"]
        assert read(build(url, errors="replace", validation_documents=0), "train") == ["d\ufffdj\ufffd"]
        (kept,) = (tmp_path / "downloads").glob(f"*.{name[2:]}")
        said = f" ({kept} was fetched from {server.url}/{name}; delete it to have it fetched again)"
        assert refused(url, validation_documents=0).endswith(said)


def test_the_size_of_what_is_compressed_is_not_known(server, tmp_path):
    (tmp_path / "served" / "a.txt.gz").write_bytes(gzip.compress(b"some text", mtime=0))
    dataset = build(f"{server.url}/a.txt.gz", validation_documents=0)
    assert read(dataset, "train") == ["some text"]
    assert dataset.size("train") is None


def test_a_url_of_nothing(server):
    assert refused(f"{server.url}/a.txt") == f"{server.url}/a.txt: there is no such file"
    assert refused(f"{server.url}/a.jsonl") == f"{server.url}/a.jsonl: there is no such file"


@pytest.mark.parametrize("settings, said", [
    ({"path": "u/n"}, "u/n, split train; the first 1,000 documents held out for validation"),
    ({"path": "u/n", "config": "c", "validation_split": "v"}, "u/n, split train of c; split v for validation"),
    ({"path": "u/n", "joined": True, "max_tokens": 10**9},
     "u/n, split train, 1,000,000,000 tokens at most; the first 1,000 rows held out for validation"),
    ({"path": "https://h/a.csv", "validation_documents": 0}, "https://h/a.csv; nothing held out for validation"),
    ({"path": "https://h/a.txt"}, "https://h/a.txt; the last 10 % held out for validation"),
])  # fmt: skip
def test_what_is_known_without_network(settings, said):
    dataset = build(**settings)
    assert dataset.describe() == said
    assert dataset.max_tokens == settings.get("max_tokens")
    assert dataset.size("train") is None


def test_the_fingerprint_is_of_the_settings_and_of_a_folders_files(folder):
    names = [build("u/n"), build("u/m"), build("u/n", revision="v"), build("u/n", column="x"), build("https://h/a.txt")]
    assert len({dataset.fingerprint() for dataset in names}) == 5
    assert build("u/n").fingerprint() == names[0].fingerprint()
    before = build(folder, config="tales").fingerprint()
    (folder / "picture.png").write_bytes(b"beside the data")
    assert build(folder, config="tales").fingerprint() == before
    (folder / "README.md").write_text(README.replace("short", "brief"))
    edited = build(folder, config="tales").fingerprint()
    (folder / "tales" / "train.parquet").rename(folder / "tales" / "other.parquet")
    (folder / "README.md").write_text(README.replace("short", "brief").replace("/train.", "/other."))
    assert len({before, edited, build(folder, config="tales").fingerprint()}) == 3


def test_a_folder_that_is_no_data_set_is_refused_before_a_byte_is_read(tmp_path):
    (tmp_path / "large.bin").write_bytes(b"x")
    with pytest.raises(UserError, match="data files"):
        build(tmp_path).fingerprint()
    for name in ("a.txt", "b.txt", "c.jsonl"):
        (tmp_path / name).write_text("")
    with pytest.raises(UserError, match="these files would be ignored: c.jsonl; "):
        build(tmp_path).fingerprint()
