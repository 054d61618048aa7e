import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.config import UserError
from gpt.data.token_file import CORES, Counts, Encoded, TokenFile, groups, id_type, in_order, write
from gpt.data.tokenizer.byte import Byte


def written(path, documents, limit=None):
    counts = write(path, documents, Byte(), limit, lambda *_, **__: None)
    return counts, TokenFile(path, counts, 257)


def test_ids_take_two_bytes_as_long_as_they_fit():
    assert id_type(65_536) == np.uint16
    assert id_type(65_537) == np.uint32


def test_sizes_are_64_bit(tmp_path):
    path = tmp_path / "train.bin"
    with path.open("wb") as file:
        file.truncate(2 * 3_000_000_000)  # a hole: takes no space
    tokens = TokenFile(path, Counts(tokens=3_000_000_000, documents=1, text_bytes=1), 257)
    tokens.check_size()
    assert len(tokens) == len(tokens.tokens) == 3_000_000_000
    assert tokens.tokens[2_999_999_999] == 0


def test_the_first_tokens_of_a_file(tmp_path):
    _, tokens = written(tmp_path / "a.bin", [["abcd"]])
    assert tokens.first(2).tokens.tolist() == [97, 98]
    assert len(tokens.first(100)) == len(tokens) == 5


@pytest.mark.parametrize(
    "limit, ids, documents, text_bytes",
    [
        (0, [], 0, 0),
        (1, [97], 1, 1),
        (2, [97, 98], 1, 2),
        (3, [97, 98, 256], 1, 2),  # the end of a whole document begins no other
        (4, [97, 98, 256, 99], 2, 3),
        (6, [97, 98, 256, 99, 256, 256], 3, 3),
        (9, [97, 98, 256, 99, 256, 256], 3, 3),
        (None, [97, 98, 256, 99, 256, 256], 3, 3),
    ],
)
def test_a_limit_cuts_within_a_document(limit, ids, documents, text_bytes, tmp_path):
    counts, tokens = written(tmp_path / "a.bin", [["a", "b"], ["", "c"], []], limit)
    assert tokens.tokens.tolist() == ids
    assert counts == Counts(tokens=len(ids), documents=documents, text_bytes=text_bytes)
    tokens.check_size()


@pytest.mark.parametrize("limit", [65_535, 65_536, 65_537])
def test_a_limit_at_the_end_of_a_piece_cuts_a_document_too(limit, tmp_path):
    counts, _ = written(tmp_path / "a.bin", [["x" * 200_000]], limit)
    assert counts == Counts(tokens=limit, documents=1, text_bytes=limit)


def test_with_a_limit_little_more_is_read(tmp_path):
    read = []

    def documents():
        for i in range(1000):
            read.append(i)
            yield ["x" * 100_000]

    counts, _ = written(tmp_path / "a.bin", documents(), limit=150_000)
    assert counts == Counts(tokens=150_000, documents=2, text_bytes=149_999)
    assert len(read) < 10 + 4 * CORES


def test_progress_is_told_in_bytes_of_text_with_a_guess_at_the_total(tmp_path):
    told = []
    documents = [["あ" * 30_000] for _ in range(20)]
    write(tmp_path / "a.bin", documents, Byte(), 900_000, lambda size, total: told.append((size, total)))
    assert sum(size for size, _ in told) == pytest.approx(900_000, abs=20)
    assert all(total == pytest.approx(900_000, abs=20) for _, total in told)  # a byte is a token here


texts = st.lists(st.lists(st.text(max_size=9), max_size=4), max_size=6)


@settings(deadline=None, max_examples=50)
@given(documents=texts)
def test_any_documents_come_back(documents, tmp_path_factory):
    counts, tokens = written(tmp_path_factory.mktemp("t") / "a.bin", documents)
    wanted = b"".join("".join(document).encode() + b"\xff" for document in documents)  # no UTF-8 holds a 0xFF
    assert bytes(255 if i == 256 else i for i in tokens.tokens.tolist()) == wanted
    assert counts.documents == len(documents)
    assert counts.text_bytes + counts.documents == counts.tokens


def test_groups_hold_many_short_documents_or_a_piece_of_a_long_one():
    short = list(groups([["ab"]] * 100_000, None))
    assert sum(map(len, short)) == 200_000
    assert len(short) == 5  # 3 characters each, 65,536 a group
    long = list(groups([["x" * 200_000]], None))
    assert [len(piece) for group in long for piece in group if piece] == [65_536, 65_536, 65_536, 3_392]
    assert long[-1][-1] is None


def test_a_cut_knows_whole_documents_from_a_broken_one():
    part = Encoded(np.arange(6), np.array([3, 5, 6]), 3)
    assert [part.cut(limit).documents for limit in range(8)] == [0, 1, 1, 1, 2, 2, 3, 3]


def test_results_keep_the_order_of_the_items_and_few_are_taken_ahead():
    first_is_done, taken = threading.Event(), []

    def items():
        for i in range(1000):
            taken.append(i)
            yield i

    def work(i):
        if i == 0:
            first_is_done.wait(10)
        return i * i

    with ThreadPoolExecutor(2) as pool:
        results = in_order(pool, work, items())
        threading.Timer(0.1, first_is_done.set).start()
        assert next(results) == 0
        assert len(taken) <= 2 * CORES + 1
        assert [next(results), *results] == [i * i for i in range(1, 1000)]


def test_an_error_in_a_thread_reaches_the_caller(tmp_path):
    with pytest.raises(UserError, match="half of a surrogate pair"):
        written(tmp_path / "a.bin", [["ok"], ["\ud800"]])
