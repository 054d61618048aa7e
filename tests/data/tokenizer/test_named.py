import hashlib
import socket
import threading

import pytest
import tiktoken

from gpt.config import ROOT, Choice, UserError
from gpt.data.encoding import PATTERNS
from gpt.data.tokenizer import named as module
from gpt.data.tokenizer.named import PATTERN_OF, Named

VECTORS = ROOT.parent / "shared" / "corpora" / "gpt2_vectors"
URL = "https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken"


def configure(encoding):
    return Choice("gpt.data.tokenizer", "tokenizer").validate({"name": "named", "encoding": encoding})


def build(encoding) -> Named:
    return configure(encoding).build(lambda split: iter(()))


@pytest.mark.parametrize(
    "encoding, size, end, pattern",
    [
        ("gpt2", 50_257, 50_256, "gpt2"),
        ("cl100k_base", 100_277, 100_257, "cl100k"),
        ("o200k_base", 200_019, 199_999, "o200k"),
    ],
)
def test_it_is_what_is_published(encoding, size, end, pattern, published, corpora):
    ours, theirs = build(encoding), tiktoken.get_encoding(encoding)
    assert (ours.vocab_size, ours.end_of_text) == (size, end) == (theirs.n_vocab, theirs.eot_token)
    assert PATTERNS[pattern] == ours.pattern == theirs._pat_str
    for name, text in corpora.items():
        assert ours.encode(text) == theirs.encode_ordinary(text), name


def test_the_vectors_of_gpt2(published):
    if not VECTORS.is_dir():
        pytest.skip("needs shared/corpora/gpt2_vectors beside the checkout")
    texts = (VECTORS / "gpt-2.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    ids = [[int(i) for i in line.split()] for line in (VECTORS / "gpt-2.out").read_text().split("\n")]
    tokenizer = build("gpt2")
    assert len(texts) == len(ids) == 47
    assert [tokenizer.encode(text) for text in texts] == ids


def test_special_tokens_stand_for_nothing_and_their_text_is_text(published):
    tokenizer = build("cl100k_base")
    assert tokenizer.encode("<|endoftext|>") == [27, 91, 8862, 728, 428, 91, 29]
    assert [i for i, token in enumerate(tokenizer.tokens) if not token] == [100256, *range(100257, 100277)]
    assert tokenizer.decode([100257, 100276, 100256]) == ""


def test_an_end_in_the_middle_of_the_ids():
    tokens = [*(bytes([i]) for i in range(256)), b"", b"ab"]
    tokenizer = Named("p50k_base", tokens, "gpt2", 256)
    assert tokenizer.encode("abc") == [257, ord("c")]
    assert (tokenizer.end_of_text, tokenizer.vocab_size) == (256, 258)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UserError) as error:
        configure("gpt-2")
    assert str(error.value).startswith("tokenizer.encoding: there is no 'gpt-2'; did you mean gpt2? there are cl100k_b")
    assert "o200k_base" in str(error.value)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Connections are refused, and the cache is an empty folder."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def refusal(encoding) -> str:
    with pytest.raises(UserError) as error:
        build(encoding)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_without_network_one_line_says_what_to_do(nowhere):
    told = refusal("p50k_base")
    assert told.startswith("tokenizer.encoding: p50k_base could not be fetched from openaipublic.blob.core.windows.net")
    assert "TIKTOKEN_CACHE_DIR" in told
    assert "tokenizer=bpe" in told


def test_a_damaged_cache_is_not_used(nowhere):
    (nowhere / hashlib.sha1(URL.encode()).hexdigest()).write_bytes(b"IQ== 0\n")
    assert "could not be fetched" in refusal("p50k_base")


def test_a_connection_that_is_never_answered_is_given_up(nowhere, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.getsockname()[1]}")
        before = set(threading.enumerate())
        assert "(TimeoutError)" in refusal("p50k_base")
        waiting = set(threading.enumerate()) - before
        assert waiting
        assert all(thread.daemon for thread in waiting), "the program could not end"


def test_a_pattern_that_is_not_known_is_refused(published, monkeypatch):
    monkeypatch.delitem(PATTERN_OF, "cl100k_base")
    assert "cl100k_base splits text, or ends it, as no encoding known here" in refusal("cl100k_base")
