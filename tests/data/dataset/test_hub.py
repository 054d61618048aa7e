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
    before = build(folder).fingerprint()
    assert build(folder).fingerprint() == before
    (folder / "README.md").write_text(README.replace("short", "brief"))
    edited = build(folder).fingerprint()
    (folder / "tales" / "train.parquet").rename(folder / "tales" / "other.parquet")
    assert len({before, edited, build(folder).fingerprint()}) == 3
