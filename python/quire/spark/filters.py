"""Filters of a query that tell where in the queues its messages are."""

from __future__ import annotations

from typing import Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

import quire

_INDEX_END: Final = 2**63 - 1
_NEVER_NULL: Final = {"_index", "_cycle", "_sequence", "_topic"}


class Limits:
    """The topics, cycles and indexes that filters leave."""

    def __init__(self) -> None:
        """Leave everything."""
        self._ranges = {"_index": (0, _INDEX_END), "_cycle": (0, _INDEX_END)}
        self._topics: set[object] | None = None

    def take(self, one: Filter) -> bool:
        """Heed a filter as far as it goes; whether nothing is left of it for Spark to do."""
        name = _column(one)
        if isinstance(one, IsNotNull):
            return name in _NEVER_NULL
        if name == "_topic":
            return self._take_topics(one)
        return name in self._ranges and self._take_range(name, one)

    def has_topic(self, topic: str) -> bool:
        """Return whether messages of a topic are wanted."""
        return self._topics is None or topic in self._topics

    def indexes(self, roll_cycle: quire.RollCycle) -> tuple[int, int]:
        """Return the first index that is wanted, and the one behind the last."""
        first, behind = self._ranges["_index"]
        cycle, behind_cycle = self._ranges["_cycle"]
        cycles_max = roll_cycle.to_cycle(_INDEX_END)
        low = roll_cycle.to_index(min(cycle, cycles_max), 0) if cycle else 0
        high = _INDEX_END
        if behind_cycle <= cycles_max:
            high = roll_cycle.to_index(max(behind_cycle, 0), 0)
        return max(first, low), min(behind, high)

    def _take_topics(self, one: Filter) -> bool:
        if isinstance(one, EqualTo | EqualNullSafe):
            found: set[object] = {one.value}
        elif isinstance(one, In):
            found = set(one.value)
        else:
            return False
        self._topics = found if self._topics is None else self._topics & found
        return True

    def _take_range(self, name: str, one: Filter) -> bool:
        low, high = self._ranges[name]
        wanted = _range(one)
        if wanted is None:
            return False
        self._ranges[name] = max(low, wanted[0]), min(high, wanted[1])
        return not isinstance(one, In)


def _column(one: Filter) -> str | None:
    path: tuple[str, ...] = getattr(one, "attribute", ())
    return path[0] if len(path) == 1 else None


def _range(one: Filter) -> tuple[int, int] | None:
    """Return the whole numbers that a filter leaves: the first, and the one behind the last."""
    if isinstance(one, In):
        numbers = [value for value in one.value if isinstance(value, int)]
        return (min(numbers), max(numbers) + 1) if numbers else None
    value = getattr(one, "value", None)
    if not isinstance(value, int):
        return None
    ranges: dict[type[Filter], tuple[int, int]] = {
        EqualTo: (value, value + 1),
        EqualNullSafe: (value, value + 1),
        GreaterThan: (value + 1, _INDEX_END),
        GreaterThanOrEqual: (value, _INDEX_END),
        LessThan: (0, value),
        LessThanOrEqual: (0, value + 1),
    }
    return ranges.get(type(one))
