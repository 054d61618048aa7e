import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from gpt.data import pieces as module
from gpt.data.pieces import SIZE, pieces
from gpt.data.tokenizer.bpe import PATTERNS

# As o200k has it: a contraction belongs to the word before it.
SPLITS = {
    **PATTERNS,
    "o200k": PATTERNS["modern"].replace("[\\p{L}\\p{M}]+", "[\\p{L}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"),
}


def words(text: str, pattern: str) -> list[str]:
    """What the split pattern makes of a text."""
    return [word for word, _ in pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)]


@settings(deadline=None)
@given(st.text(max_size=40).map(lambda s: s * 400))
def test_joined_they_are_the_text(text):
    assert "".join(pieces(text)) == text


@settings(deadline=None)
@given(st.text(st.sampled_from("abé日1 \n.,'!"), max_size=30).map(lambda s: s * 1000))
def test_none_is_longer_than_twice_the_size_and_only_the_last_is_shorter_than_it(text):
    lengths = [len(piece) for piece in pieces(text)]
    assert all(length <= 2 * SIZE for length in lengths)
    assert all(length >= SIZE for length in lengths[:-1])


def test_a_piece_is_one_piece():
    text = "some words, in order. " * 3000
    for piece in pieces(text):
        assert list(pieces(piece)) == [piece]


def test_a_text_without_boundaries_is_cut_all_the_same():
    assert [len(piece) for piece in pieces("あ" * 20_000)] == [8192, 8192, 3616]


@pytest.mark.parametrize("pattern", SPLITS)
def test_every_boundary_is_one_of_the_split_pattern(pattern, corpora):
    for name, text in corpora.items():
        ends, end = {0}, 0
        for word in words(text, SPLITS[pattern]):
            end += len(word)
            ends.add(end)
        assert end == len(text), name  # the pattern leaves nothing out
        boundaries = {found.start() for found in module.BOUNDARY.finditer(text)}
        assert boundaries <= ends, (name, sorted(boundaries - ends)[:3])


@settings(deadline=None)
@given(
    st.text(st.sampled_from("abZsé日1½ \n\r\t\u00a0\u3000.,'!_-e\u0301「」"), max_size=60),
    st.sampled_from(sorted(SPLITS)),
)
def test_cutting_at_a_boundary_changes_no_word(text, pattern):
    for found in module.BOUNDARY.finditer(text):
        cut = words(text[: found.start()], SPLITS[pattern]) + words(text[found.start() :], SPLITS[pattern])
        assert cut == words(text, SPLITS[pattern])
