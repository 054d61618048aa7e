import torch

from gpt.model.pattern import Pattern


def test_unless_told_otherwise_the_stride_is_the_root_of_the_context(build):
    assert build(attention="sparse", context=100).attentions[0].pattern == Pattern(25, sinks=4, stride=10)
    settings = {"name": "sparse", "window": 7, "sinks": 0, "stride": 3}
    assert build(attention=settings).attentions[0].pattern == Pattern(7, sinks=0, stride=3)


def test_its_memory_grows_with_the_text(build):
    assert not build(attention="sparse").endless


def test_what_a_window_cannot_reach_is_two_steps_away(build):
    """Token 2 is no column; token 3 sees it and is one, so in the second layer all later tokens do."""
    settings = {"name": "sparse", "window": 2, "sinks": 0, "stride": 4}
    tokens = torch.randint(50, (1, 16))
    changed = tokens.clone()
    changed[0, 2] = (tokens[0, 2] + 1) % 50
    differ = {}
    for layers in (1, 2):
        model = build(attention=settings, n_layer=layers)
        differ[layers] = ((model(tokens) - model(changed)).abs().amax(dim=(0, 2)) > 1e-6).nonzero().flatten().tolist()
    assert differ[1] == [2, 3]
    assert differ[2] == list(range(2, 16))
