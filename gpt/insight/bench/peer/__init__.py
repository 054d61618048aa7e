"""The contract of a peer: a model of our model's shape, with random weights, by the code of another library.

Each lives in the file of its name, which has a function `build(model)`. A library is imported only when its peer is
built.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from gpt.device import Precision
from gpt.insight.bench.race import Contender
from gpt.insight.bench.settings import BenchSettings, PeerName
from gpt.insight.bench.training import Training
from gpt.model.gpt import GPT


class NoPeerError(Exception):
    """Nothing can be measured beside, told in one sentence."""


class Peer:
    """What is measured beside ours."""

    name: PeerName
    description: str
    """Which version and class, and what is not as ours, for a person."""

    def training(self, settings: BenchSettings) -> Training | None:
        """What trains it; None where the library does not train."""
        return None

    def decoding(self, precision: Precision, prompts: Sequence[Sequence[int]], new_tokens: int) -> Contender:
        """What writes greedily after prompts of one length, weights in the precision or in one of its size."""
        raise NotImplementedError


def built_peers(model: GPT, names: Sequence[PeerName]) -> Iterator[Peer | tuple[str, str]]:
    """The peers of our model, on its device; for one that cannot be, its name and a sentence that says why."""
    for name in names:
        try:
            peer: Peer = import_module(f"{__name__}.{name}").build(model)
            yield peer
        except NoPeerError as error:
            yield name, f"none: {error}"


def require(distribution: str, extra: str, major: int | None = None) -> str:
    """The version of a library that is installed.

    Args:
        distribution: as pip knows it.
        extra: of ours, that brings it.
        major: the first number that its version must have; None: any.

    Raises:
        NoPeerError: it is not here, or another version; with the way to install it.
    """
    install = f"pip install -e '.[{extra}]'"
    try:
        found = version(distribution)
    except PackageNotFoundError:
        raise NoPeerError(f"{distribution} is not installed; to measure beside it: {install}") from None
    if major is not None and int(found.partition(".")[0]) != major:
        raise NoPeerError(f"{distribution} {found} is installed, {major}.x is needed: {install}")
    return found
