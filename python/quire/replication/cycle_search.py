"""The search for the first cycle in which a replica differs from its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quire.errors import ReplicationError
from quire.replication.digests import CycleDigests


class Range(NamedTuple):
    """Cycles, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Same:
    """All cycles that both sides have are the same, except perhaps the newest."""


@dataclass(frozen=True, slots=True)
class DiffersIn:
    """The first cycle that differs."""

    cycle: int


@dataclass(frozen=True, slots=True)
class LacksBefore:
    """The source has cycles before this one that the replica lacks."""

    cycle: int


class CycleSearch:
    """
    Compares ranges of cycles with the source's, until the first that differs is known.

    Args:
        digests: The digests of the replica.
        cycles: The replica's cycles, at least one: the newest is not compared.
        first: The source's first cycle: it has deleted earlier ones.

    """

    def __init__(self, digests: CycleDigests, cycles: Sequence[int], first: int) -> None:
        self._digests, self._newest = digests, cycles[-1]
        self._first = max(first, cycles[0])
        self._cycles = [it for it in cycles[:-1] if it >= self._first]
        # The ranges from the first cycle to those before `low` are the same; that to `high` is not.
        self._low, self._high = 0, len(self._cycles)
        self._is_gap_asked = False
        self.asked = Range(self._first, self._newest - 1)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to compare."""
        return self.asked.first <= self.asked.last

    def answer(
        self, asked: Range, lowest: int, count: int, digest: bytes
    ) -> Same | DiffersIn | LacksBefore | None:
        """
        Process the source's answer; None: :attr:`asked` is the next range to request.

        Args:
            asked: The range.
            lowest: The source's first cycle now.
            count: How many cycles of the range it has.
            digest: The hash of their digests.

        Raises:
            ReplicationError: The source answered a request that was not sent.

        """
        if asked != self.asked:
            raise ReplicationError(
                f"the source answered a request that was not sent: range={asked}"
            )
        if lowest > self._first:  # it has deleted cycles meanwhile
            self.__init__(self._digests, [*self._cycles, self._newest], lowest)  # type: ignore[misc]
            return None if self.is_needed else Same()
        if self._is_gap_asked:
            return LacksBefore(self._after_gap) if count else DiffersIn(self._after_gap)
        is_same = (count, digest) == self._digests.of_range(*asked)
        if asked.last == self._newest - 1 and is_same:
            return Same()
        if asked.last in self._cycles:
            middle = self._cycles.index(asked.last)
            if is_same:
                self._low = middle + 1
            else:
                self._high = middle
        return self._next()

    def _next(self) -> DiffersIn | None:
        if self._low < self._high:
            middle = (self._low + self._high) // 2
            self.asked = Range(self._first, self._cycles[middle])
            return None
        before = self._cycles[self._low - 1] if self._low else self._first - 1
        self.asked, self._is_gap_asked = Range(before + 1, self._after_gap - 1), True
        return None if self.is_needed else DiffersIn(self._after_gap)

    @property
    def _after_gap(self) -> int:
        return self._cycles[self._low] if self._low < len(self._cycles) else self._newest
