"""How a training shows a text: how often each token, how much of it not, and what looking at validation costs."""

from dataclasses import dataclass

from gpt.data.batches import Batches
from gpt.data.tokens import Prepared
from gpt.training.settings import TrainSettings

FORWARD_SHARE = 1 / 3
"""Of a token's cost in training: the backward pass takes two forward ones (Kaplan et al. 2020, section 2.1)."""


@dataclass(frozen=True)
class Exposure:
    """A text against the settings of a training."""

    context: int
    batch_size: int
    steps: int | None
    """None: a budget of time decides."""
    eval_every: int
    sequences: int
    """Of an epoch."""
    left_out: int
    """Training tokens that an epoch leaves out, fewer than two contexts, others in each."""
    validation_windows: int
    """Windows of an evaluation; 0 where there is no validation split."""

    @property
    def epoch_steps(self) -> int:
        """Steps after which each token has been seen once."""
        return -(-self.sequences // self.batch_size)

    @property
    def epochs(self) -> float | None:
        """How often each token is seen; None where it is not known."""
        return None if self.steps is None else self.steps * self.batch_size / self.sequences

    @property
    def evaluations(self) -> int | None:
        """How many there are, the one at the end included; None where it is not known."""
        return None if self.steps is None else -(-self.steps // self.eval_every)

    @property
    def evaluation_steps(self) -> float:
        """As how many steps an evaluation costs, about."""
        return self.validation_windows / self.batch_size * FORWARD_SHARE


def exposure(settings: TrainSettings, prepared: Prepared) -> Exposure:
    """How the training that the settings describe shows the prepared text.

    Raises:
        UserError: the training split is too short for the context.
    """
    context = settings.model.context
    batches = Batches(prepared.train, context, settings.batch_size, settings.seed)
    judged = 0 if prepared.validation is None else len(prepared.validation) - 1
    return Exposure(
        context=context,
        batch_size=settings.batch_size,
        steps=None if settings.budget else settings.steps,
        eval_every=settings.eval_every,
        sequences=batches.windows,
        left_out=len(prepared.train) - batches.windows * context,
        validation_windows=-(-judged // context),
    )
