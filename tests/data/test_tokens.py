import errno
import os
import re
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from gpt.config import RunError, UserError
from gpt.data.dataset import Dataset
from gpt.data.dataset.builtin import BuiltinConfig
from gpt.data.token_file import CORES, Counts
from gpt.data.tokenizer.bpe import BPE, BPEConfig
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokenizer.char import CharConfig
from gpt.data.tokens import prepare

BYTE = ByteConfig()
BPE_300 = BPEConfig(vocab_size=300)


def test_documents_stand_one_after_the_other_each_with_end_of_text(texts, tmp_path):
    prepared = prepare(texts(["ab", "", "日"], ["z"]), BYTE, tmp_path)
    assert prepared.train.tokens.tolist() == [97, 98, 256, 256, 0xE6, 0x97, 0xA5, 256]
    assert prepared.validation.tokens.tolist() == [122, 256]
    assert prepared.train.counts == Counts(tokens=8, documents=3, text_bytes=5)
    assert prepared.validation.counts == Counts(tokens=2, documents=1, text_bytes=1)
    assert prepared.train.vocab_size == prepared.tokenizer.vocab_size == 257


def test_the_builtin_corpus_comes_back_from_its_tokens(tmp_path):
    dataset = BuiltinConfig(years=[1860, 1870]).build()
    prepared = prepare(dataset, BPEConfig(), tmp_path)
    for split, tokens in (("train", prepared.train), ("validation", prepared.validation)):
        documents = ["".join(document) for document in dataset.documents(split)]
        ends = np.flatnonzero(tokens.tokens == prepared.tokenizer.end_of_text)
        assert len(ends) == tokens.counts.documents == len(documents)
        first = prepared.tokenizer.decode(tokens.tokens[: ends[0]].tolist())
        assert first == documents[0]
        assert prepared.tokenizer.decode(tokens.tokens.tolist()) == "".join(documents)
        assert prepared.tokenizer.byte_lengths()[tokens.tokens].sum() == tokens.counts.text_bytes


def test_the_tokenizer_learns_from_train_only(texts, tmp_path):
    prepared = prepare(texts(["abab"], ["zqzqzqzq"]), BPE_300, tmp_path)
    assert b"ab" in prepared.tokenizer.tokens
    assert b"zq" not in prepared.tokenizer.tokens


def test_tokens_are_mapped_read_only(texts, tmp_path):
    tokens = prepare(texts(["ab"], []), BYTE, tmp_path).train.tokens
    assert isinstance(tokens, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1


def test_nothing_held_out_is_no_validation(texts, tmp_path):
    assert prepare(texts(["ab"], []), BYTE, tmp_path).validation is None


def test_what_the_check_refuses_is_not_kept(texts, tmp_path):
    dataset, seen = texts(["ab"], ["z"]), []

    def check(prepared):
        seen.append(prepared.train.tokens.tolist())
        raise UserError("of no use")

    for expected in ([[97, 98, 256]], [[97, 98, 256]] * 2):
        with pytest.raises(UserError, match="of no use"):
            prepare(dataset, BYTE, tmp_path, check)
        assert seen == expected
        assert list(tmp_path.iterdir()) == []
    prepare(dataset, BYTE, tmp_path)
    with pytest.raises(UserError, match="of no use"):
        prepare(dataset, BYTE, tmp_path, check)
    assert len(list(tmp_path.iterdir())) == 1  # made by a call that could use it: that stays


def test_training_tokens_are_limited_and_validation_is_not(texts, tmp_path):
    dataset = texts(["abc", "def"], ["uvwxyz"])
    whole = prepare(dataset, BYTE, tmp_path)
    dataset.max_tokens = 6
    prepared = prepare(dataset, BYTE, tmp_path)
    assert prepared.train.tokens.tolist() == [97, 98, 99, 256, 100, 101]
    assert len(prepared.validation) == 7
    assert len(whole.train) == 8
    assert whole.train.path != prepared.train.path


@pytest.mark.parametrize("tokenizer", [CharConfig(), BPE_300])
def test_a_tokenizer_learns_from_no_more_than_training_may_read(tokenizer, tmp_path):
    class Endless(Dataset):
        name = "texts"
        max_tokens = 100

        def fingerprint(self):
            return "0"

        def describe(self):
            return "without end"

        def documents(self, split):
            for i in count() if split == "train" else ():
                assert i < 100_000 * CORES, "this much is not needed"
                yield [chr(ord("a") + i) * 10 if i < 10 else "z" * 10 if i < 50_000 else "?" * 10]

    prepared = prepare(Endless(), tokenizer, tmp_path)
    assert len(prepared.train) == 100
    if isinstance(tokenizer, CharConfig):
        assert prepared.tokenizer.characters == "abcdefghijz"  # of 100 characters and a thread's share


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(texts, tmp_path, monkeypatch):
    def full(*_):
        with open("/dev/full", "wb", buffering=0) as file:  # noqa: PTH123
            file.write(b"x")

    monkeypatch.setattr("gpt.data.token_file.write", full)
    with pytest.raises(RunError, match="no room is left for the tokens"):
        prepare(texts(["ab"], []), BYTE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_quota_is_a_full_disk(texts, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("gpt.data.token_file.write", full)
    with pytest.raises(RunError, match="no room is left for the tokens"):
        prepare(texts(["ab"], []), BYTE, tmp_path)


def test_what_gets_its_name_is_on_disk_and_then_so_is_the_name(texts, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(
        "gpt.data.tokens.sync", lambda path: synced.append((path.name, len([*tmp_path.glob("texts-*")])))
    )
    name = prepare(texts(["ab"], ["z"]), BYTE, tmp_path).train.path.parent.name
    files = ["prepared.json", "train.bin", "validation.bin", "vocabulary.json"]
    assert sorted(synced[:-1]) == sorted((what, 0) for what in [*files, name])
    assert synced[-1] == (tmp_path.name, 1)


def test_no_text_at_all_is_no_tokens(texts, tmp_path):
    prepared = prepare(texts([], []), BPE_300, tmp_path)
    assert len(prepared.train) == 0
    assert prepared.train.tokens.shape == (0,)


def test_the_second_time_nothing_is_made(texts, tmp_path, monkeypatch):
    dataset = texts(["abab"], ["z"])
    first = prepare(dataset, BPE_300, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert len(before) == 5

    def build(*_):
        raise AssertionError("the tokenizer is learned a second time")

    monkeypatch.setattr(BPEConfig, "build", build)
    second = prepare(dataset, BPE_300, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert isinstance(second.tokenizer, BPE)
    assert second.tokenizer.tokens == first.tokenizer.tokens
    assert second.train.tokens.tolist() == first.train.tokens.tolist()


def test_another_text_split_or_setting_is_prepared_anew(texts, tmp_path):
    variants = [
        (texts(["abab", "c"], ["z"]), BPE_300),
        (texts(["abaB", "c"], ["z"]), BPE_300),  # edited
        (texts(["ababc"], ["z"]), BPE_300),  # another cut into documents
        (texts(["aba", "bc"], ["z"]), BPE_300),
        (texts(["c", "abab"], ["z"]), BPE_300),
        (texts(["abab", "c", "z"], []), BPE_300),
        (texts(["abab", "c"], ["z"]), BPEConfig(vocab_size=301)),
        (texts(["abab", "c"], ["z"]), BPEConfig(vocab_size=300, pattern="gpt2")),
        (texts(["abab", "c"], ["z"]), BYTE),
    ]
    paths = {prepare(dataset, tokenizer, tmp_path).train.path for dataset, tokenizer in variants}
    assert len(paths) == len(variants)
    assert all(re.fullmatch(r"texts-(bpe|byte)-[0-9a-f]{16}", path.parent.name) for path in paths)


def test_a_tokenizer_that_is_there_is_taken_as_it_is(texts, tmp_path):
    ab, zq = (prepare(texts([word * 4], []), BPE_300, tmp_path / word).tokenizer for word in ("ab", "zq"))
    dataset = texts(["zq"], ["ab"])
    prepared = prepare(dataset, ab, tmp_path)
    assert prepared.tokenizer.saved() == ab.saved()
    assert prepared.train.tokens.tolist() == [*ab.encode("zq"), ab.end_of_text]
    assert prepared.validation.tokens.tolist() == [*ab.encode("ab"), ab.end_of_text]
    assert len(ab.encode("ab")) == 1 < len(ab.encode("zq"))
    others = [prepare(dataset, tokenizer, tmp_path) for tokenizer in (zq, BPE_300)]
    assert len({p.train.path for p in (prepared, *others)}) == len({p.fingerprint for p in (prepared, *others)}) == 3
    assert others[0].train.tokens.tolist() == [*zq.encode("zq"), zq.end_of_text]
    assert prepare(dataset, ab, tmp_path).train.path == prepared.train.path, "found again"


@pytest.mark.parametrize("prepared_before", [False, True])
def test_what_is_not_check_fingerprintd_is_refused_before_anything_is_made(prepared_before, texts, tmp_path):
    def check_fingerprint(fingerprint):
        seen.append(fingerprint)
        raise UserError("another text")

    dataset, seen = texts(["ab"], ["z"]), []
    expected = prepare(dataset, BYTE, tmp_path / ("data" if prepared_before else "elsewhere")).fingerprint
    with pytest.raises(UserError, match="another text"):
        prepare(dataset, BYTE, tmp_path / "data", check_fingerprint=check_fingerprint)
    assert seen == [expected]
    assert (tmp_path / "data").exists() == prepared_before
    prepared = prepare(dataset, BYTE, tmp_path / "data", check_fingerprint=seen.append)
    assert seen == [expected, prepared.fingerprint]


def test_what_another_version_prepared_is_not_taken(texts, tmp_path, monkeypatch):
    dataset = texts(["ab"], ["z"])
    before = prepare(dataset, BYTE, tmp_path).train.path
    monkeypatch.setattr("gpt.data.tokens.VERSION", 1_000_000)
    assert prepare(dataset, BYTE, tmp_path).train.path != before


def test_the_same_is_prepared_in_the_same_bytes(texts, tmp_path):
    dataset = texts(["the people of the states", "of the people"], ["the people"])
    contents = [
        {
            path.name: path.read_bytes()
            for path in prepare(dataset, BPE_300, tmp_path / where).train.path.parent.iterdir()
        }
        for where in ("a", "b")
    ]
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == ["prepared.json", "train.bin", "validation.bin", "vocabulary.json"]


@pytest.mark.parametrize("name", ["train.bin", "validation.bin"])
@pytest.mark.parametrize("damage", ["cut", "grown", "missing"])
def test_a_token_file_of_another_size_is_refused(name, damage, texts, tmp_path):
    dataset = texts(["ab"], ["z"])
    path = prepare(dataset, BYTE, tmp_path).train.path.with_name(name)
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-1] if damage == "cut" else content + b"\0\0")
    with pytest.raises(UserError) as error:
        prepare(dataset, BYTE, tmp_path)
    assert str(error.value).startswith(f"{path} {'is missing' if damage == 'missing' else 'has '}")
    assert f"delete {path.parent} and its tokens are prepared anew" in str(error.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"train": {}, "validation": {}}', b'{"train": -1}', b"\xff"])
def test_a_damaged_sidecar_is_one_line(content, texts, tmp_path):
    dataset = texts(["ab"], ["z"])
    path = prepare(dataset, BYTE, tmp_path).train.path.with_name("prepared.json")
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        prepare(dataset, BYTE, tmp_path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_folder_that_cannot_be_made_is_one_line(texts, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: prepared tokens cannot be kept there: File exists"):
        prepare(texts(["ab"], []), BYTE, tmp_path / "file")


def test_an_error_in_the_text_leaves_nothing_behind(texts, tmp_path):
    dataset = texts(["ab", "c\ud800"], [])
    with pytest.raises(UserError, match="half of a surrogate pair"):
        prepare_with_fixed_fingerprint(dataset, tmp_path)
    assert list(tmp_path.iterdir()) == []


def prepare_with_fixed_fingerprint(dataset, folder):
    dataset.fingerprint = lambda: "0"  # the hash would meet the wrong character first
    return prepare(dataset, BYTE, folder)


SLOW = """
import sys, time
from pathlib import Path
from gpt.data.dataset import Dataset
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokenizer.char import CharConfig
from gpt.data.tokens import prepare

class Slow(Dataset):
    name = "texts"
    passes = 0

    def documents(self, split):
        self.passes += 1
        for i in range(60 if split == "train" else 0):
            if self.passes > 2 and i == 59:  # the first two passes are the fingerprint's
                print("in the middle", flush=True)
                time.sleep(60)
            yield ["some text " * 20_000]

prepare(Slow(), ByteConfig(), Path(sys.argv[1]))
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_killed_in_the_middle_it_leaves_nothing_that_counts(texts, tmp_path):
    with subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"in the middle\n"
        process.send_signal(signal.SIGKILL)
    left = list(tmp_path.iterdir())
    assert [path.name.startswith(".preparing-") for path in left] == [True]  # it was at work, and is not whole
    assert any(path.stat().st_size > 0 for path in left[0].rglob("train.bin"))
    prepared = prepare(texts(["some text " * 20_000] * 60, [], chunk=100_000), BYTE, tmp_path)
    assert len(prepared.train) == 60 * 200_001
    assert list(tmp_path.iterdir()) == [prepared.train.path.parent]  # and what was left has been cleared away


def test_several_processes_at_once_all_end_well(tmp_path):
    code = """
import sys
from pathlib import Path
from gpt.data.dataset.builtin import BuiltinConfig
from gpt.data.tokenizer.bpe import BPEConfig
from gpt.data.tokens import prepare
print("ready", flush=True)
sys.stdin.readline()
dataset = BuiltinConfig(years=[1860, 1862]).build()
print(prepare(dataset, BPEConfig(vocab_size=300), Path(sys.argv[1])).train.tokens.sum())
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all of them begin now
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], ends
    assert len({out for out, _ in ends}) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_the_locale_does_not_matter(tmp_path):
    code = """
import locale, sys
from pathlib import Path
from gpt.data.dataset.builtin import BuiltinConfig
from gpt.data.tokenizer.bpe import BPEConfig
from gpt.data.tokens import prepare
assert locale.getpreferredencoding(False) != "UTF-8"
dataset = BuiltinConfig(years=[1998, 2002]).build()
assert any(not chunk.isascii() for text in dataset.documents("train") for chunk in text)
for _ in range(2):
    prepared = prepare(dataset, BPEConfig(vocab_size=400), Path(sys.argv[1]))
texts = ["".join(document) for document in dataset.documents("train")]
assert prepared.tokenizer.decode(prepared.train.tokens) == "".join(texts)
"""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_does_not_grow_with_the_corpus(texts, tmp_path):
    code = """
import sys
from pathlib import Path
from gpt.data.dataset import Dataset
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokenizer.char import CharConfig
from gpt.data.tokens import prepare

class Long(Dataset):
    name = "texts"

    def documents(self, split):
        if split == "train":
            yield ("0123456789" * 100_000 for _ in range(int(sys.argv[2])))

    def describe(self):
        return "digits"

prepare(Long(), ByteConfig(), Path(sys.argv[1]))
status = Path("/proc/self/status").read_text(encoding="utf-8")
print(status.partition("VmHWM:")[2].split()[0])
"""
    peaks = [
        int(subprocess.check_output([sys.executable, "-c", code, str(tmp_path), str(megabytes)]))
        for megabytes in (4, 40)
    ]
    assert peaks[1] - peaks[0] < 20_000  # kB; the longer text's tokens alone are 80,000
