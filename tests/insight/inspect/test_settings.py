"""The settings, and the yaml that lists them."""

import pytest
import yaml

from gpt.cli import compose
from gpt.config import ROOT, UserError
from gpt.insight.inspect.settings import InspectSettings


def test_the_yaml_lists_every_setting_with_its_default():
    content = yaml.safe_load((ROOT / "configs" / "inspect.yaml").read_text(encoding="utf-8"))
    content.pop("defaults")
    assert content == InspectSettings().model_dump()


def test_prompt_run_and_folder_are_taken_literally():
    typed = ["prompt=私は、${x} 'quoted', yes=no", "run=a, b", "to=(c)"]
    settings, _ = compose("inspect", typed, InspectSettings)
    assert (settings.prompt, settings.run, settings.to) == ("私は、${x} 'quoted', yes=no", "a, b", "(c)")


@pytest.mark.parametrize(
    "typed, words", [("top=0", "top"), ("unknown=drop", "unknown"), ("promt=x", "did you mean prompt")]
)
def test_mistakes(typed, words):
    with pytest.raises(UserError, match=words):
        compose("inspect", [typed], InspectSettings)
