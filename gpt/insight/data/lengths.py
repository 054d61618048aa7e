"""How long things are, many of them, in memory that does not grow with their number."""

from array import array

KEPT = 1 << 20
"""Lengths that are remembered, at most; up to so many the median is exact."""


class Lengths:
    """Lengths as they come: shortest, longest, and how many of each power of two; and one in so many to order them."""

    def __init__(self) -> None:
        self.count = self.total = self.longest = 0
        self.shortest: int | None = None
        self.by_bits = [0] * 64
        """How many there are of 0, 1, 2-3, 4-7, 8-15, ..."""
        self._kept = array("Q")
        self._one_in = 1

    def add(self, length: int) -> None:
        """One more."""
        if self.count % self._one_in == 0:
            self._kept.append(length)
            if len(self._kept) > KEPT:
                self._kept, self._one_in = self._kept[::2], 2 * self._one_in
        self.count += 1
        self.total += length
        self.longest = max(self.longest, length)
        self.shortest = length if self.shortest is None else min(self.shortest, length)
        self.by_bits[length.bit_length()] += 1

    @property
    def empty(self) -> int:
        """How many are 0."""
        return self.by_bits[0]

    @property
    def median(self) -> int:
        """The middle one, of an even number the upper; 0 where there are none."""
        return sorted(self._kept)[len(self._kept) // 2] if self._kept else 0

    def histogram(self, bars: int) -> list[tuple[int, int, int]]:
        """(lowest, highest, how many) from the shortest to the longest, at most `bars` of them.

        Each reaches over so many powers of two, the same for all of them.
        """
        used = [bits for bits, many in enumerate(self.by_bits) if many]
        if not used:
            return []
        first, last = used[0], used[-1]
        step = -(-(last - first + 1) // bars)
        return [
            (_lowest(bits), _lowest(bits + step) - 1, sum(self.by_bits[bits : bits + step]))
            for bits in range(first, last + 1, step)
        ]


def _lowest(bits: int) -> int:
    return 1 << bits - 1 if bits else 0
