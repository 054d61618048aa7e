"""Learning-rate schedules: pure multipliers of progress, the contract of a schedule variant.

progress = (step + 1) / steps, or elapsed / budget; it runs over (0, 1]. The multiplier rises linearly over the warmup,
is 1 at its end, and then is the variant's own shape, down to `floor` at progress 1.
"""

from collections.abc import Callable

from pydantic import Field

from gpt.config import Variant

Schedule = Callable[[float], float]


class ScheduleConfig(Variant):
    """A schedule variant's configuration."""

    warmup: float = Field(default=0.05, ge=0, lt=1)
    """Share of the training over which the learning rate rises to its peak."""

    def build(self) -> Schedule:
        """Progress in (0, 1] -> multiplier of the learning rate in [0, 1]."""
        return self.multiplier

    def multiplier(self, progress: float) -> float:
        """Warmup, then the variant's shape over what is left."""
        if progress < self.warmup:
            return progress / self.warmup
        return self.shape(min(1.0, (progress - self.warmup) / (1 - self.warmup)))

    def shape(self, progress: float) -> float:
        """The multiplier after the warmup, of progress over what is left, in [0, 1]."""
        raise NotImplementedError


class DecayingConfig(ScheduleConfig):
    """A schedule that ends at a floor."""

    floor: float = Field(default=0.0, ge=0, le=1)
    """The last learning rate, as a share of the peak."""
