"""docs/settings.md is what the typed configurations say."""

from importlib.util import module_from_spec, spec_from_file_location

import pytest

from gpt.config import ROOT


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("settings_reference", ROOT / "docs" / "settings.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_up_to_date(script):
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert text == script.reference(), "run python docs/settings.py"


def test_it_tells_of_a_setting_once_and_of_a_verb_s_own(script):
    text = script.reference()
    assert text.count("| `eval_every=250` |") == 1
    assert text.index("## python train.py") < text.index("| `eval_every=250` |") < text.index("## python sample.py")
    assert "### `model/attention=sliding_window`" in text
    assert "| `decode_batch=[1,8]` |" in text
