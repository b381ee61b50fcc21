"""What a run's results are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from quire.demo.analyse import Analysis
from quire.demo.figures import TOLERANCE, Figures, Group, differences
from quire.demo.record import Recording

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Check:
    """
    Two results of the same.

    Attributes:
        what: The one.
        against: The other.
        wrong: Where they differ, a line each; nothing when they are equal.

    """

    what: str
    against: str
    wrong: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Whether they are equal."""
        return f"{len(self.wrong)} differ: {self.wrong[0]}" if self.wrong else "equal"


def checks_of(
    recording: Recording, analysis: Analysis, expected: Mapping[Group, Figures]
) -> list[Check]:
    """Hold the results against one another, and against *expected*, those of the data set."""
    return [
        Check(
            f"figures of {len(analysis.groups):,} groups, from the journal",
            f"those of plain Python from flights.csv, within {TOLERANCE:g}",
            tuple(differences(analysis.groups, expected)),
        ),
        Check(
            f"messages in {len(analysis.messages):,} {recording.journal.stores_of_days}",
            "events that were to be written that day",
            _unequal(analysis.messages, recording.messages),
        ),
        Check(
            "totals of the live tailer",
            "totals over the events that were written",
            _unequal({"tailed": recording.followed}, {"tailed": recording.written}),
        ),
    ]


def _unequal(found: Mapping[_Key, object], expected: Mapping[_Key, object]) -> tuple[str, ...]:
    return tuple(
        f"{key}: {found.get(key)} is not {expected.get(key)}"
        for key in dict.fromkeys([*expected, *found])
        if found.get(key) != expected.get(key)
    )
