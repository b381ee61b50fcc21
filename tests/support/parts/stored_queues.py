"""Queues of several days, what is stored in them, and what they give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import quire
from queues import DAY_MS, START_MS
from quire.maintenance import seal
from reference import read_queue


def fill(
    path: Path,
    message: Callable[[int, int], dict[str, object]],
    days: int,
    each: int,
    **options: Any,  # noqa: ANN401
) -> list[bytes]:
    """Append messages by day and number, and return them as they are read."""
    clock = quire.ManualClock(START_MS)
    open_any: Any = quire.open
    opened = open_any(path, roll_cycle="TEST4_DAILY", clock=clock, **options)
    with opened as queue, queue.appender() as appender:
        for day in range(days):
            for number in range(each):
                appender.write_map(message(day, number))
            clock.now_ms += DAY_MS
    return messages(path)


def messages(path: Path) -> list[bytes]:
    """Return the messages as they are read."""
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [bytes(it.data) for it in tailer]


def stored(path: Path) -> list[bytes]:
    """Return the messages as they are in the files."""
    return [payload for _, payload in read_queue(path)]


def day_of(excerpt: Any) -> str:  # noqa: ANN401
    """Return the name of a queue by the day of a message."""
    return f"day{excerpt.to_dict()['day']}"


def day_and_number_of(excerpt: Any) -> tuple[int, int]:  # noqa: ANN401
    """Return what orders messages."""
    found = excerpt.to_dict()
    return found["day"], found["number"]


def seals_and_retention_keep(path: Path, expected: list[bytes], each: int) -> None:
    """Seal a queue, compress its older cycles, and remove all but the last, of *each* messages."""
    assert seal(path) is not None
    quire.prune(path, max_cycles=3, action="compress")
    assert [*path.glob("*.zst")]
    assert messages(path) == expected
    assert quire.verify(path, seals=True).ok
    quire.prune(path, max_cycles=1)
    assert messages(path) == expected[-each:]


def groups_and_named_tailers_give(path: Path, expected: list[bytes], second: object) -> None:
    """Have a group and a named tailer read a queue; *second* is its second message, as a map."""
    with quire.open(path) as queue:
        with queue.group("workers").consumer() as consumer:
            for wanted in expected:
                message = next(iter(consumer))
                assert bytes(message.data) == wanted
                message.ack()
        with queue.tailer("risk") as tailer:
            assert tailer.read() is not None
        with queue.tailer("risk") as tailer:
            assert tailer.read_map() == second
