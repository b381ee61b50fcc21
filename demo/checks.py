"""What a run's results are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from demo.analyse import Analysis
from demo.fail_over import FailOver
from demo.figures import TOLERANCE, Figures, Group, differences
from demo.life import Life, left_of
from demo.record import Recording

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
    recording: Recording,
    analysis: Analysis,
    expected: Mapping[Group, Figures],
    life: Life | None = None,
    fail_over: FailOver | None = None,
) -> list[Check]:
    """Hold the results against one another, and against *expected*, those of the data set."""
    lived = [] if life is None else _checks_of_life(recording, life)
    failed_over = [] if fail_over is None else [_check_of_fail_over(fail_over)]
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
        *failed_over,
        *lived,
    ]


def _check_of_fail_over(fail_over: FailOver) -> Check:
    lost = fail_over.acknowledged - fail_over.kept
    return Check(
        f"{fail_over.acknowledged:,} events that were acknowledged before the first node died",
        "what the second node had then",
        (f"{lost:,} acknowledged events were lost",) if lost > 0 else (),
    )


def _checks_of_life(recording: Recording, life: Life) -> list[Check]:
    counted, events = recording.metrics, recording.written.events
    appended = events - recording.replicated
    return [
        Check(
            "totals of the consumer group",
            "totals over the events that were written",
            _unequal({"shared": life.sharing.totals}, {"shared": recording.written}),
        ),
        Check(
            f"messages in {len(life.pruning.messages):,} days that retention left",
            "events of the days that were to be kept",
            _unequal(
                life.pruning.messages, left_of(recording.messages, life.pruning.oldest_needed)
            ),
        ),
        Check(
            "messages counted by metrics, appended and read",
            "events that were written",
            _unequal(
                {"appended": counted.messages_appended, "read": counted.messages_read},
                {"appended": appended, "read": events},
            ),
        ),
    ]


def _unequal(found: Mapping[_Key, object], expected: Mapping[_Key, object]) -> tuple[str, ...]:
    return tuple(
        f"{key}: {found.get(key)} is not {expected.get(key)}"
        for key in dict.fromkeys([*expected, *found])
        if found.get(key) != expected.get(key)
    )
