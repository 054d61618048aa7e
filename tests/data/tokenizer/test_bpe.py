import functools

import pytest
from tokenizers import pre_tokenizers, trainers

from gpt.config import Choice, UserError
from gpt.data.dataset.builtin import BuiltinConfig
from gpt.data.encoding import PATTERNS, from_printable, to_printable
from gpt.data.tokenizer.bpe import BPE, BPEConfig, learner


def build(documents, **settings) -> BPE:
    config = Choice("gpt.data.tokenizer", "tokenizer").validate({"name": "bpe", **settings})
    return config.build(lambda split: ([text] for text in documents if split == "train"))


@functools.cache
def addresses() -> tuple[str, ...]:
    return tuple("".join(address) for address in BuiltinConfig(years=[1860, 1870]).build().documents("train"))


def library(documents, size, pattern):
    """The same, all of it by the library: trained on whole documents, and to be asked for ids."""
    tokenizer = learner(PATTERNS[pattern])
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    return tokenizer


def test_a_text_whose_merges_can_be_followed_by_hand():
    # Pairs: a+b stands 6 times and is merged, then ab+c twice and is merged, then there is none.
    tokenizer = build(["ab"] * 4 + ["abc"] * 2)
    assert tokenizer.tokens[256:] == [b"ab", b"abc", b""]
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (259, 258)
    assert tokenizer.encode("abc") == [257]
    assert tokenizer.encode("abab") == [256, 256]


def test_a_pair_seen_once_is_not_learned():
    assert build(["qxzj"]).vocab_size == 257


def test_no_text_gives_the_bytes():
    assert build([]).vocab_size == 257


def test_the_vocabulary_is_as_large_as_asked_and_end_of_text_is_its_last():
    tokenizer = build(addresses(), vocab_size=300)
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (300, 299)


@pytest.mark.parametrize("size", [0, -1])
def test_it_must_learn_from_something(size):
    with pytest.raises(UserError, match=r"^tokenizer.learn_from: .* greater than or equal to 1"):
        build([], learn_from=size)


@pytest.mark.parametrize("size", [256, 0, -5, 10**9])
def test_sizes_that_cannot_be_are_refused(size):
    with pytest.raises(UserError, match=r"^tokenizer.vocab_size: .* (greater|less) than or equal to"):
        build([], vocab_size=size)


def test_an_unknown_pattern_is_refused():
    with pytest.raises(UserError, match=r"^tokenizer\.pattern: .*'gpt2' or 'modern', got 'gpt3'$"):
        build([], pattern="gpt3")


@pytest.mark.parametrize("pattern", ["gpt2", "modern"])
def test_ids_are_those_of_the_library_that_learned_them(pattern, corpora):
    documents = [*addresses(), corpora["wagahaiwa_nekodearu.txt"][:100_000], corpora["blns.txt"]]
    ours, theirs = build(documents, pattern=pattern, vocab_size=2048), library(documents, 2047, pattern)
    assert [to_printable(token) for token in ours.tokens[:-1]] == [theirs.id_to_token(i) for i in range(2047)]
    encodings = theirs.encode_batch(list(corpora.values()))
    for (name, text), encoding in zip(corpora.items(), encodings, strict=True):
        assert ours.encode(text) == encoding.ids, name


def test_patterns_split_as_they_say():
    def split(text, pattern):
        found = learner(PATTERNS[pattern]).pre_tokenizer.pre_tokenize_str(text)
        return [from_printable(word).decode() for word, _ in found]

    text = "(that) don't DON'T  12345\n\nहिन्दी"
    assert split(text, "gpt2") == [
        "(", "that", ")", " don", "'t", " DON", "'", "T", " ", " 12345", "\n", "\n",
        "ह", "ि", "न", "्", "द", "ी",
    ]  # fmt: skip
    assert split(text, "modern") == [
        "(that", ")", " don", "'t", " DON", "'T", " ", " ", "123", "45", "\n\n", "हिन्दी",
    ]  # fmt: skip


@pytest.mark.parametrize("size, learned", [(1, [b"ab"]), (4, [b"ab"]), (5, [b"ab", b"cd"]), (8, [b"ab", b"cd"])])
def test_no_more_is_read_than_it_learns_from(size, learned):
    def documents(split):
        assert split == "train"
        yield ["ab", "ab"]
        yield iter(["cd", "cd"])
        raise AssertionError("there was enough")

    assert BPEConfig(learn_from=size).build(documents).tokens[256:-1] == learned


def test_what_it_learns_from_is_counted_in_bytes():
    def documents(split):
        yield ["日本"]
        yield ["日本"]
        raise AssertionError("two characters of three bytes each, twice, are twelve bytes")

    BPEConfig(learn_from=12).build(documents)


def test_what_it_learns_from_ends_with_a_piece():
    text = "ab, " * 300 + "cd, " * 400  # the pieces end at 1,026, 2,050, ...
    assert b"cd" not in build([text], learn_from=1026, pattern="gpt2").tokens
    assert b"cd" in build([text], learn_from=1027, pattern="gpt2").tokens


def test_an_error_while_reading_comes_through_the_library():
    def documents(split):
        yield ["some text"]
        raise UserError("the file is gone")

    with pytest.raises(UserError, match="the file is gone"):
        BPEConfig().build(documents)
