"""Parameters that a training leaves as they are: no gradient, no state of an optimizer, no weight decay."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from gpt.config import UserError
from gpt.model.gpt import GPT


def freeze(model: GPT, patterns: Sequence[str]) -> GPT:
    """Have the parameters that the patterns name ask for no gradient.

    Raises:
        UserError: as of `frozen`.
    """
    names = dict(model.named_parameters())
    for name in frozen(names, patterns, model.config.tied):
        names[name].requires_grad_(False)
    return model


def frozen(names: Collection[str], patterns: Sequence[str], tied: bool) -> set[str]:
    """The names that a pattern matches: * is any text, dots too, ? a character, [01] one of these.

    Args:
        names: of all parameters.
        patterns: each must match one at least.
        tied: whether embedding and head are one table, whose name is the embedding's.

    Raises:
        UserError: a pattern matches nothing, or nothing is left to train.
    """
    found: set[str] = set()
    for pattern in patterns:
        matching = {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            head = "; the head is embedding.weight, by model.tied" if tied and pattern.startswith("head") else ""
            raise UserError(f"freeze: no parameter is named {pattern!r}; did you mean {closest(pattern, names)}?{head}")
        found |= matching
    if found == set(names):
        raise UserError("freeze: every parameter is frozen, and nothing is left to train; leave a pattern out")
    return found


def closest(pattern: str, names: Collection[str]) -> str:
    """The pattern of a module, or the name of a parameter, that is nearest to one that matches nothing.

    >>> closest("embeding.*", ["embedding.weight", "blocks.0.norm.weight"])
    'embedding.*'
    >>> closest("blocks.0", ["embedding.weight", "blocks.0.norm.weight"])
    'blocks.0.*'
    """
    parts = [name.split(".") for name in names]
    modules = {".".join(part[:depth]) for part in parts for depth in range(1, len(part))}
    bare = pattern.removesuffix(".*")
    (near,) = get_close_matches(bare, sorted({*modules, *names}), n=1, cutoff=0.0)
    return near if near in names else f"{near}.*"
