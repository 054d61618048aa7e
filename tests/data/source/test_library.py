from itertools import pairwise

import datasets
import huggingface_hub
import pytest
from datasets.utils import logging
from huggingface_hub.errors import OfflineModeIsEnabled

from gpt.config import UserError
from gpt.data.source.library import check_split, guarded, open_builder, reach, told, undecodable


@pytest.mark.parametrize("error, said", [
    (ValueError("first\n  second"), "here: cannot be read: first"),
    (RuntimeError("x" * 500), f"here: cannot be read: {'x' * 199}…"),
    (FileNotFoundError(2, "No such file"), "here: there is no such file"),
    (OfflineModeIsEnabled("off"),
     "here: cannot be reached (off); check the network, or use text that is on this machine"),
    (datasets.exceptions.DatasetNotFoundError("It is gated."),
     "here: It is gated. Check dataset.path; if it is private or gated, log in with: hf auth login"),
    (datasets.exceptions.DataFilesNotFoundError("No data files in x"), "here: No data files in x"),
    (RuntimeError("Dataset scripts are no longer supported, but found x.py"),
     "here: it needs a script to be read, and none is run; try dataset.revision=refs/convert/parquet"),
    (LookupError("unknown encoding: x"),
     "here: unknown encoding: x; set dataset.encoding to one that Python knows, such as utf-8, latin-1 or utf-16"),
])  # fmt: skip
def test_whatever_the_library_raises_is_one_line(error, said):
    with pytest.raises(UserError) as raised, told("here"):
        raise error
    assert str(raised.value) == said
    assert raised.value.__cause__ is error


def chained(*errors):
    """The first, raised from the second, and so on."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def test_the_cause_is_told():
    outer = datasets.exceptions.DatasetGenerationError("An error occurred while generating the dataset")
    with pytest.raises(UserError, match="^here: cannot be read: torn$"), told("here"):
        raise chained(outer, ValueError("torn"))
    refused = chained(ConnectionError("Max retries exceeded"), ValueError("pool"), OSError(111, "Connection refused"))
    with pytest.raises(UserError, match=r"^here: cannot be reached \(Connection refused\); "), told("here"):
        raise refused


def test_without_network_only_what_is_kept_will_do(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(UserError, match=r"^u/n: cannot be reached \("):
        reach("u/n", None, kept=True)
    (tmp_path / "u___n").mkdir()
    reach("u/n", None, kept=True)
    with pytest.raises(UserError, match=r"^u/n: cannot be reached \("):
        reach("u/n", None)


@pytest.mark.parametrize("error", [UserError("as it is"), KeyboardInterrupt(), MemoryError()])
def test_what_is_not_the_librarys_passes(error):
    with pytest.raises(type(error)) as raised, told("here"):
        raise error
    assert raised.value is error


def test_its_logs_and_bars_are_off_within_and_as_before_after():
    datasets.enable_progress_bars()
    logging.set_verbosity_info()
    with told("here"):
        assert logging.get_verbosity() == logging.CRITICAL
        assert huggingface_hub.logging.get_verbosity() == logging.CRITICAL
        assert datasets.are_progress_bars_disabled()
    assert logging.get_verbosity() == logging.INFO
    assert not datasets.are_progress_bars_disabled()


def test_each_step_of_an_iterator_is_guarded_and_nothing_between():
    def two():
        yield 1
        raise ValueError("broken")

    steps = guarded(two(), "here")
    logging.set_verbosity_info()
    assert next(steps) == 1
    assert logging.get_verbosity() == logging.INFO
    with pytest.raises(UserError, match="^here: cannot be read: broken$"):
        next(steps)
    assert list(guarded([], "here")) == []


@pytest.mark.parametrize("content, encoding, said", [
    (b"ab\xff", "utf-8", "byte 0xff at offset 2 is no utf-8"),
    ("é".encode() * (1 << 19) + b"\xc3(", "utf-8", "byte 0xc3 at offset 1048576 is no utf-8"),
    (b"x" * ((1 << 20) - 1) + b"\xc3(", "utf-8", "byte 0xc3 at offset 1048575 is no utf-8"),
    ("a".encode("utf-16") + b"\0", "utf-16", "the end is no utf-16"),
])  # fmt: skip
def test_the_place_of_a_byte_that_is_no_text(tmp_path, content, encoding, said):
    (tmp_path / "a").write_bytes(content)
    assert undecodable(str(tmp_path / "a"), UnicodeDecodeError(encoding, b"x", 0, 1, "")) == said


@pytest.fixture
def folder(tmp_path):
    """A data set of two configurations; the first has two splits."""
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: one\n  data_files:\n  - {split: train, path: a.jsonl}\n"
        "  - {split: test, path: a.jsonl}\n- config_name: two\n  data_files: a.jsonl\n---\n"
    )
    return str(tmp_path)


@pytest.mark.parametrize(
    "config, wrong", [(None, "there are several configs"), ("three", "there is no config 'three'")]
)
def test_a_configuration_that_is_not_there(folder, config, wrong):
    with pytest.raises(UserError) as error:
        open_builder(folder, config, None)
    assert str(error.value) == f"{folder}: {wrong}; set dataset.config to one of one, two"


def test_a_split_that_is_not_there(folder):
    builder = open_builder(folder, "one", None)
    check_split(builder, "test", folder, "dataset.split")
    with pytest.raises(UserError) as error:
        check_split(builder, "dev", folder, "dataset.split")
    assert str(error.value) == f"{folder}: there is no split 'dev'; set dataset.split to one of train, test"


def test_a_folder_without_data(tmp_path):
    with pytest.raises(UserError, match=f"^{tmp_path}: .*doesn't contain any data files"):
        open_builder(str(tmp_path), None, None)
