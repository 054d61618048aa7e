"""A folder that there is, or one that is fetched."""

import huggingface_hub
import pytest

from gpt.config import UserError
from gpt.interop.hugging_face import hub


def test_a_folder_is_taken_before_the_hub_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "fetched", lambda name: pytest.fail("the Hub was asked"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()
    folder, name = hub.located("gpt2")
    assert folder.samefile(tmp_path / "gpt2")
    assert name == str(tmp_path / "gpt2")


def test_a_name_is_fetched_without_pickles_and_code(tmp_path, monkeypatch):
    asked = {}
    monkeypatch.setattr(hub, "DOWNLOADS", tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, **options: asked.update(options, name=name))
    assert hub.located("owner/model") == (tmp_path / "owner--model", "owner/model")
    assert (asked["name"], asked["local_dir"]) == ("owner/model", tmp_path / "owner--model")
    wanted = set(huggingface_hub.utils.filter_repo_objects(
        ["pytorch_model.bin", "modeling.py", "model.safetensors", "config.json", "tokenizer.json", "vocab.bin"],
        allow_patterns=asked["allow_patterns"],
    ))  # fmt: skip
    assert wanted == {"model.safetensors", "config.json", "tokenizer.json"}


def test_no_network_is_one_line(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    told = r"hf:owner/model is no folder here, and could not be fetched from the Hub \(no route to host\); check"
    with pytest.raises(UserError, match=told):
        hub.located("owner/model")
