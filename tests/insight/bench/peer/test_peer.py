import pytest

from gpt.insight.bench import peer
from gpt.insight.bench.peer import NoPeerError, built_peers, require
from gpt.model.gpt import GPT


def missing(name: str) -> str:
    raise peer.PackageNotFoundError(name)


def test_what_is_not_installed_is_one_sentence_with_the_way_out(monkeypatch):
    monkeypatch.setattr(peer, "version", missing)
    with pytest.raises(NoPeerError, match=r"^litgpt is not installed; .*pip install -e '\.\[bench\]'$"):
        require("litgpt", "bench")
    monkeypatch.setattr(peer, "version", lambda name: "4.57.1")
    assert require("transformers", "dev") == require("transformers", "dev", major=4) == "4.57.1"
    with pytest.raises(NoPeerError, match=r"transformers 4\.57\.1 is installed, 5\.x is needed"):
        require("transformers", "dev", major=5)


@pytest.mark.parametrize("settings", [{}, {"position": {"name": "alibi"}}])
def test_a_peer_that_cannot_be_is_told_and_left_out(settings, shape, monkeypatch):
    """Not installed, or of a shape that nobody else has."""
    monkeypatch.setattr(peer, "version", missing)
    names = ["transformers", "litgpt", "llama_cpp"]
    told = list(built_peers(GPT(shape("qwen3", **settings)), names))
    assert [name for name, _ in told] == names
    reason = "has no model with position alibi" if settings else "is not installed"
    assert all(text.startswith("none: ") and reason in text for _, text in told)
