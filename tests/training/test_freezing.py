"""Parameters that stay as they are, to the bit, through every optimizer, process and resumption."""

import pytest
import torch

from gpt.config import UserError, variant_class, variant_names
from gpt.device import Precision
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.training.freezing import freeze, frozen
from gpt.training.guard import Guard
from gpt.training.optimizer import load_optimizer_state, optimizer_state, parameter_groups
from gpt.training.parallel import Spread
from gpt.training.summary import trained
from gpt.training.update import Update

ALONE = Processes(torch.device("cpu"))
PACKAGE = "gpt.training.optimizer"
NAMES = ["embedding.weight", "blocks.0.attention.qkv.weight", "blocks.1.attention.qkv.weight", "norm.weight"]
PATTERNS = {
    "a block": ["blocks.0.*"],
    "the tables": ["embedding.*", "head.*"],
    "the table": ["embedding.*"],
    "all matrices of blocks": ["blocks.*.qkv.weight", "blocks.*.output.weight", "blocks.*.input.weight"],
    "all but matrices": ["embedding.*", "head.*", "*norm.weight"],
    "all but a gain": ["embedding.*", "head.*", "blocks.*"],
}


def model(**settings):
    torch.manual_seed(0)
    sizes = {"vocab_size": 11, "context": 8, "n_layer": 2, "n_head": 2, "d_model": 8, "tied": False}
    return GPT(GPTConfig(**{**sizes, **settings}))


@pytest.mark.parametrize(
    "patterns, found",
    [
        ([], []),
        (["embedding.weight"], NAMES[:1]),
        (["blocks.0.*", "norm.*"], [NAMES[1], NAMES[3]]),
        (["blocks.[01].*.weight"], NAMES[1:3]),
    ],
)
def test_what_patterns_name(patterns, found):
    assert sorted(frozen(NAMES, patterns, tied=True)) == sorted(found)


@pytest.mark.parametrize(
    "pattern, told",
    [
        ("embeding.*", r"no parameter is named 'embeding\.\*'; did you mean embedding\.\*\?$"),
        ("blocks.0", r"did you mean blocks\.0\.\*\?"),
        ("blocks.7.*", r"did you mean blocks\.[01]\.\*\?"),
        ("Norm.weight", r"did you mean norm\.weight\?"),
        ("head.*", r"the head is embedding\.weight, by model\.tied"),
    ],
)
def test_what_names_nothing_is_refused_with_the_nearest(pattern, told):
    with pytest.raises(UserError, match=f"^freeze: .*{told}"):
        frozen(NAMES, ["norm.weight", pattern], tied=True)


def test_all_frozen_is_refused():
    with pytest.raises(UserError, match="freeze: every parameter is frozen, and nothing is left to train"):
        freeze(model(), ["blocks.*", "*"])


def trained_by(name, patterns, updates=3, **settings):
    built = freeze(model(**settings), PATTERNS[patterns])
    guard = Guard(variant_class(PACKAGE, name)(name=name).build(built), 1.0, torch.amp.GradScaler("cpu", enabled=False))
    update = Update(Spread(built, ALONE), guard, Precision("fp32", "as set", torch.device("cpu")))
    more(update, 0, updates)
    return update


def more(update, first, last):
    for step in range(first, last):
        tokens = (torch.arange(8) * (step + 3))[None] % 11
        update([(tokens, tokens.roll(-1))])


@pytest.mark.parametrize("patterns", PATTERNS)
@pytest.mark.parametrize("name", variant_names(PACKAGE))
def test_it_stays_and_all_else_is_trained(name, patterns):
    update, before = trained_by(name, patterns), model().state_dict()
    kept = frozen(before, PATTERNS[patterns], tied=False)
    assert {key for key, tensor in update.model.state_dict().items() if torch.equal(tensor, before[key])} == kept
    groups = [key for group in parameter_groups(update.model).values() for key in group]
    assert sorted(groups) == sorted(before.keys() - kept)
    ids = [id(p) for group in update.guard.optimizer.param_groups for p in group["params"]]
    assert sorted(ids) == sorted(id(p) for key, p in update.model.named_parameters() if key not in kept)
    state = optimizer_state(update.model, update.guard.optimizer)
    assert {key.removeprefix("state.").rpartition(".")[0] for key in state} == before.keys() - kept
    assert all(update.model.get_parameter(key).grad is None for key in kept)


@pytest.mark.parametrize("patterns", PATTERNS)
@pytest.mark.parametrize("name", variant_names(PACKAGE))
def test_it_goes_on_as_if_it_had_not_been_left(name, patterns):
    whole, left = trained_by(name, patterns, 4), trained_by(name, patterns, 2)
    weights = {key: tensor.clone() for key, tensor in left.model.state_dict().items()}
    state = {key: tensor.clone() for key, tensor in optimizer_state(left.model, left.guard.optimizer).items()}
    resumed = trained_by(name, patterns, 0)
    resumed.model.load_state_dict(weights)
    load_optimizer_state(resumed.model, resumed.guard.optimizer, lambda: state, ALONE)
    more(resumed, 2, 4)
    assert all(torch.equal(tensor, whole.model.state_dict()[key]) for key, tensor in resumed.model.state_dict().items())


def test_a_table_that_is_head_too_stays_as_one():
    update, before = trained_by("adamw", "the table", tied=True), model(tied=True)
    assert torch.equal(update.model.embedding.weight, before.embedding.weight)


def test_how_many_are_trained_is_told():
    """A table of 11 x 8 is frozen, its head of the same size is not."""
    built = freeze(model(), ["embedding.*"])
    assert trained(built) == [
        ("freeze", f"{built.count_parameters() - 88:,} parameters are trained, 88 stay as they are")
    ]
    assert trained(model()) == []
