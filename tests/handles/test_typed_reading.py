"""Messages as objects, one and many at a time; tailers that go to a time."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import START_MS

DAY_MS = 86_400_000
START = datetime.fromtimestamp(START_MS / 1000, UTC)
MIDNIGHT = START.replace(hour=0, minute=0)


@quire.message(alias="TypedReadingTrade")
@dataclass
class Trade:
    number: int = 0
    at: int = 0


def trades(count: int) -> list[Trade]:
    return [Trade(number, START_MS + 1000 * number) for number in range(count)]


def write(queue: quire.JournalQueue, count: int, *, typed: bool = False) -> list[Trade]:
    written = trades(count)
    with queue.appender() as appender:
        for trade in written:
            appender.write_message(trade, typed=typed)
    return written


@pytest.mark.parametrize("wire_type", ["BINARY_LIGHT", "FIELDLESS_BINARY"])
def test_an_excerpt_is_made_an_object(wire_type: str, path: Path) -> None:
    with quire.open(path, wire_type=wire_type) as queue:
        (trade,) = write(queue, 1)
        excerpt = queue.tailer().read()
        assert excerpt is not None
        assert excerpt.to_message(Trade) == trade
        assert pickle.loads(pickle.dumps(excerpt)).to_message(Trade) == trade


def test_an_excerpt_is_made_what_it_names(queue: quire.JournalQueue) -> None:
    (trade,) = write(queue, 1, typed=True)
    excerpt = queue.tailer().read()
    assert excerpt is not None
    assert excerpt.to_message() == trade


def test_an_excerpt_is_made_text(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_text("grün")
    appender.write_map({"a": 1})
    text, other = queue.tailer()
    assert text.to_text() == "grün"
    with pytest.raises(quire.errors.WireError, match=f"index={other.index:#x}"):
        other.to_text()


def test_many_messages_are_read_as_objects(queue: quire.JournalQueue) -> None:
    written = write(queue, 25)
    tailer = queue.tailer()
    assert tailer.read_messages(Trade, 10) == written[:10]
    assert tailer.read_messages(Trade, 100) == written[10:]
    assert tailer.read_messages(Trade, 100) == []


def test_a_batch_of_objects_is_done_when_the_next_is_asked_for(path: Path) -> None:
    with quire.open(path) as queue:
        written = write(queue, 25)
        tailer = queue.tailer("name")
        assert tailer.read_messages(Trade, 10) == written[:10]
        assert queue.table_value("index.name") == 0
        assert tailer.read_messages(Trade, 10) == written[10:20]
        assert queue.table_value("index.name") == (queue.first_index or 0) + 10


def test_a_message_that_does_not_decode_ends_a_batch_of_objects(queue: quire.JournalQueue) -> None:
    written = write(queue, 3)
    bad = queue.appender().write_text("no trade")
    more = write(queue, 2)
    tailer = queue.tailer("name")
    assert tailer.read_messages(Trade, 10) == written
    assert tailer.index == bad
    assert queue.table_value("index.name") == 0  # nothing is done yet
    with pytest.raises(quire.errors.WireError, match=f"index={bad:#x}"):
        tailer.read_messages(Trade, 10)
    assert tailer.index == bad
    tailer.read()
    assert tailer.read_messages(Trade, 10) == more


@quire.message(alias="TypedReadingStern")
@dataclass
class Stern:
    number: int = 0
    at: int = 0
    refused = -1

    def __post_init__(self) -> None:
        if self.number == self.refused:
            raise KeyboardInterrupt


def test_an_interrupt_of_a_batch_of_objects_loses_none(queue: quire.JournalQueue) -> None:
    write(queue, 5)
    tailer = queue.tailer("name")
    Stern.refused = 3
    try:
        with pytest.raises(KeyboardInterrupt):
            tailer.read_messages(Stern, 10)
    finally:
        Stern.refused = -1
    assert tailer.index == queue.first_index
    assert [it.number for it in tailer.read_messages(Stern, 10)] == [0, 1, 2, 3, 4]


def test_objects_are_followed(queue: quire.JournalQueue) -> None:
    written = write(queue, 3)
    tailer = queue.tailer()
    found: list[Trade] = []
    for trade in tailer.follow_messages(Trade, timeout_s=0.01):
        found.append(trade)
        if len(found) == 3:
            written += write(queue, 2)
    assert found == written


def test_objects_are_followed_in_an_event_loop(queue: quire.JournalQueue) -> None:
    async def main() -> list[Trade]:
        found: list[Trade] = []
        async for trade in queue.tailer().afollow_messages(Trade):
            found.append(trade)
            if len(found) == 3:
                asyncio.get_running_loop().call_soon(write, queue, 2)
            if len(found) == 5:
                break
        return found

    written = write(queue, 3)
    assert asyncio.run(main()) == written + trades(2)


@pytest.mark.parametrize(
    "time",
    [
        START + timedelta(seconds=7),
        (START + timedelta(seconds=7)).astimezone(timezone(timedelta(hours=5))),
        (START + timedelta(seconds=7)).replace(tzinfo=None),
        START_MS // 1000 + 7,
        START_MS / 1000 + 6.5,
        (START + timedelta(seconds=7)).isoformat(),
        (START + timedelta(seconds=7)).isoformat().replace("+00:00", "Z"),
    ],
    ids=str,
)
def test_a_tailer_goes_to_a_time_of_a_field(
    time: datetime | float | str, queue: quire.JournalQueue
) -> None:
    written = write(queue, 20)
    tailer = queue.tailer()
    assert tailer.move_to_time(time, time_field="at") is True
    assert tailer.read_message(Trade) == written[7]


def test_a_tailer_goes_to_a_time_outside_the_queue(queue: quire.JournalQueue) -> None:
    tailer = queue.tailer()
    assert tailer.move_to_time(START) is False
    written = write(queue, 3)
    assert tailer.move_to_time(0, time_field="at") is True
    assert tailer.read_messages(Trade, 10) == written
    assert tailer.move_to_time(START + timedelta(days=1), time_field="at") is False
    assert tailer.read() is None
    written = write(queue, 1)
    assert tailer.read_messages(Trade, 10) == written


def test_a_tailer_goes_to_the_start_of_a_cycle(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    for day in (0, 1, 4):
        clock.now_ms = START_MS + day * DAY_MS
        appender.write_many([b"%d %d" % (day, number) for number in range(3)])
    tailer = queue.tailer()
    for days, expected in [(-10_000, b"0 0"), (0, b"0 0"), (1, b"1 0"), (2, b"4 0"), (4, b"4 0")]:
        time = MIDNIGHT + timedelta(days=days)
        assert tailer.move_to_time(time) is True, days
        assert tailer.read_bytes() == expected
    # No message is of that day: each of its times leads to the next day with one.
    assert tailer.move_to_time(START + timedelta(days=2)) is True
    assert tailer.read_bytes() == b"4 0"
    assert tailer.move_to_time(MIDNIGHT + timedelta(days=5)) is False
    assert tailer.read() is None
    with pytest.raises(ValueError, match="cycle_start="):
        tailer.move_to_time(START + timedelta(days=1))


def test_a_time_must_be_one(queue: quire.JournalQueue) -> None:
    write(queue, 1)
    tailer = queue.tailer()
    for bad in ("yesterday", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not a time"):
            tailer.move_to_time(bad)
    others: list[Any] = [None, True, b"2024-01-01"]
    for other in others:
        with pytest.raises(TypeError, match="not a time: type="):
            tailer.move_to_time(other)
    with pytest.raises(ValueError, match="field=nothing"):
        tailer.move_to_time(START, time_field="nothing")
    assert tailer.read_message(Trade) is not None
