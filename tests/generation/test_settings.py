from pathlib import Path

import pytest
from omegaconf import OmegaConf

from gpt.config import ROOT, UserError, parse
from gpt.generation.settings import SampleSettings

NAMES = {
    *("run", "prompt", "prompts", "max_new_tokens", "num_samples", "temperature", "top_k", "top_p", "min_p"),
    *("repetition_penalty", "stop", "unknown", "overflow", "seed", "stream", "device", "precision"),
    *("compile", "quantize", "debug"),
}


def test_the_names_are_the_fixed_ones():
    assert set(SampleSettings.model_fields) == NAMES


def test_every_setting_is_described():
    assert [name for name, field in SampleSettings.model_fields.items() if not field.description] == []


def test_the_yaml_lists_every_setting_with_the_same_value():
    listed = OmegaConf.to_container(OmegaConf.load(ROOT / "configs/sample.yaml"))
    assert listed.pop("defaults") == ["_self_"]
    assert listed == SampleSettings().model_dump()
    assert parse(SampleSettings, listed) == SampleSettings()


def test_prompts_as_they_are_given(tmp_path):
    file = tmp_path / "prompts.txt"
    file.write_bytes("\ufeffOnce upon\r\n\r\n 私は \n# 2024\u2028x".encode())
    assert SampleSettings().texts() == [""]
    assert SampleSettings(prompt="007").texts() == ["007"]
    assert SampleSettings(prompts=["a", ""]).texts() == ["a", ""]
    assert SampleSettings(prompts=str(file)).texts() == ["Once upon", " 私は ", "# 2024\u2028x"]


@pytest.mark.parametrize(
    "content, told",
    [(None, "No such file"), (b"", "no prompt"), (b" \n\n", "no prompt"), (b"ab\xff", "byte 2")],
)
def test_a_file_of_prompts_that_cannot_be_used(tmp_path, content, told):
    file = tmp_path / "prompts.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=told) as error:
        SampleSettings(prompts=str(file)).texts()
    assert str(file) in str(error.value)


def test_a_folder_is_no_file_of_prompts():
    with pytest.raises(UserError, match="cannot read"):
        SampleSettings(prompts=str(Path(__file__).parent)).texts()


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"prompt": "a", "prompts": ["b"]}, "prompt and prompts are both given"),
        ({"prompts": [2024]}, "2024 is no text; quote it"),
        ({"prompts": []}, "prompts: there is no prompt"),
        ({"prompts": 7}, "prompts: 7 is neither"),
        ({"max_new_tokens": 0}, "greater than or equal to 1, got 0"),
        ({"num_samples": 0}, "num_samples"),
        ({"overflow": "wrap"}, "'stop', 'slide' or 'error', got 'wrap'"),
        ({"unknown": "drop"}, "unknown: expected 'error', 'skip' or 'replace', got 'drop'"),
        ({"precision": "int8"}, "precision"),
        ({"temprature": 1.0}, "temprature: there is no such setting; did you mean temperature?"),
    ],
)
def test_mistakes_are_one_line(wrong, told):
    with pytest.raises(UserError) as error:
        parse(SampleSettings, wrong)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
