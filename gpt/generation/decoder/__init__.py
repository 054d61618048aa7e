"""How a model sees one more token: the contract of a decoder, and the plain way, which all others are compared with.

A prompt is always seen by the model itself. The token after it, and each one after that, is seen by a decoder: the same
step on weights that are laid out for few rows (`prepared.py`), or compiled (`compiled.py`). `choice.py` takes one.
"""

from torch import Tensor

from gpt.model.cache import Cache
from gpt.model.gpt import GPT
from gpt.model.mask import Where


class Decoder:
    """The model as it is.

    Args:
        model: what was prepared for it, or the model itself.
        told: what it is, in a few words.
    """

    def __init__(self, model: GPT, told: str = "eager") -> None:
        self.model = model
        self.told = told

    def __call__(self, token: Tensor, where: Where | None, cache: Cache) -> Tensor:
        """See one more token, (rows, 1), after those in the cache: (rows, vocab_size) logits."""
        return self.model.logits(self.model.hidden(token, where, cache)[:, -1])

    def room(self, tokens: int) -> int:
        """For how many tokens a cache is built that `tokens` are to fit into."""
        return tokens
