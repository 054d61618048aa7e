import pytest
from rich.cells import cell_len

from gpt.data.tokenizer.bpe import BPEConfig
from gpt.data.tokenizer.byte import ByteConfig
from gpt.insight.data.excerpt import SHADES, excerpt, label, shown


@pytest.fixture
def byte():
    return ByteConfig(name="byte").build(lambda _: iter(()))


def lines(tokenizer, text, width=80, height=9, colour=False):
    return [line.plain for line in excerpt(tokenizer, tokenizer.encode(text), width, height, colour)]


@pytest.mark.parametrize(
    "token, expected",
    [
        (b" the", "·the"),
        ("日".encode(), "日"),
        ("日".encode()[:2], "<E6 97>"),
        ("日".encode()[2:] + "本".encode() + b"\xe8", "<A5>本<E8>"),
        (b"\r\n", "←↵"),
        (b"\0", "<U+0000>"),
        (b"", ""),
    ],
)
def test_labels(token, expected):
    assert label(token) == expected


def test_bars_stand_between_tokens_and_lines_end_where_the_text_does(byte):
    assert lines(byte, "ab c\nd") == ["a│b│·│c│↵", "d"]


def test_japanese_by_bytes_and_by_characters(byte):
    assert lines(byte, "日本") == ["<E6>│<97>│<A5>│<E6>│<9C>│<AC>"]
    text = "日本 " * 50
    bpe = BPEConfig(name="bpe", vocab_size=300).build(lambda _: iter([[text]]))
    assert "日本" in lines(bpe, "日本 日本")[0]


def test_full_lines_end_between_tokens(byte):
    assert lines(byte, "abcdef", width=6) == ["a│b│c", "d│e│f"]
    assert lines(byte, "abcdef", width=6, colour=True) == ["abcdef"]
    assert lines(byte, "abcdef", width=6, height=1) == ["a│b│c"]


def test_a_token_wider_than_a_line_is_a_line():
    bpe = BPEConfig(name="bpe", vocab_size=300).build(lambda _: iter([["longword " * 50]]))
    assert lines(bpe, "longword a longword", width=5) == ["longword", "·│a", "·longword"]


def test_wide_characters_take_two_columns():
    bpe = BPEConfig(name="bpe", vocab_size=300).build(lambda _: iter([["日本" * 50]]))
    found = lines(bpe, "日本a" * 20, width=40, height=99)
    assert "".join(found).replace("│", "") == "日本a" * 20
    assert len(found) > 2
    assert all(20 < cell_len(line) <= 40 for line in found[:-1])


def test_neighbours_have_different_backgrounds(byte):
    (line,) = excerpt(byte, byte.encode("abc"), 80, 9, colour=True)
    assert line.plain == "abc"
    assert [span.style for span in line.spans] == [SHADES[0], SHADES[1], SHADES[0]]


def test_end_of_text_is_told(byte):
    assert shown(byte, byte.end_of_text) == "<end of text>"
    ids = [*byte.encode("a"), byte.end_of_text, *byte.encode("b")]
    assert [line.plain for line in excerpt(byte, ids, 80, 9, colour=False)] == ["a│<end of text>↵", "b"]
