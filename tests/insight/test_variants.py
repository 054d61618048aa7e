"""Settings and styles of the attention variants."""

from gpt.config import variant_names
from gpt.insight.variants import OTHERS, PACKAGE, STYLES, configured, styles


def test_a_variant_takes_only_the_settings_that_it_has():
    wanted = {"window": 8, "sinks": 1, "stride": 4}
    assert configured("sdpa", wanted) == {"name": "sdpa"}
    assert configured("sparse", wanted) == {"name": "sparse", **wanted}


def test_every_variant_is_drawn_in_a_style_of_its_own():
    made = styles()
    assert list(made) == list(variant_names(PACKAGE))
    looks = [(style["color"], style["marker"]) for style in made.values()]
    assert len(set(looks)) == len(looks)
    assert {name for name, _ in STYLES} <= set(made)
    assert not {style.color for _, style in STYLES} & {style.color for style in OTHERS}
