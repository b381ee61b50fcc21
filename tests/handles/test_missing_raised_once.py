"""With ``on_missing="raise"`` a loss is raised once, in the read that begins at it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import quire
from queues import DAY_MS
from quire.calls.method_reader import MethodReader

LOST = -1
LEFT = [0, 1, 2, LOST, 6, 7, 8]
"""What a reader gets of three days of three messages each, the second of which was deleted."""

Read: TypeAlias = Callable[[], Iterable[int]]
"""Returns the numbers of the next messages."""
Way: TypeAlias = Callable[[quire.JournalTailer], Read]


@quire.message
@dataclass
class Numbered:
    number: int


class Handler:
    """Keeps the numbers it is called with, until they are taken."""

    def __init__(self) -> None:
        self._found: list[int] = []

    def number(self, number: int) -> None:
        self._found.append(number)

    def take(self) -> list[int]:
        found, self._found = self._found, []
        return found


class AsyncHandler(Handler):
    async def number(self, number: int) -> None:  # type: ignore[override]
        super().number(number)


@pytest.fixture
def tailer(queue: quire.JournalQueue, clock: quire.ManualClock) -> quire.JournalTailer:
    """A tailer in the first of three days, the second of which is deleted."""
    with queue.appender() as appender:
        for number in range(9):
            appender.write_map({"number": number})
            if number % 3 == 2:
                clock.advance(DAY_MS)
    tailer = queue.tailer(on_missing="raise")
    assert tailer.index
    tailer.wait(0)
    Path(queue.file_for_cycle(queue.cycles[1])).unlink()
    queue.refresh()
    return tailer


def number_of(data: bytes) -> int:
    number = quire.Excerpt(0, data).to_dict()["number"]
    assert isinstance(number, int)
    return number


def numbers_of(payloads: Iterable[bytes | None]) -> list[int]:
    return [number_of(data) for data in payloads if data is not None]


def of_excerpts(excerpts: Iterable[quire.Excerpt | None]) -> list[int]:
    return numbers_of(excerpt.data for excerpt in excerpts if excerpt is not None)


def of_messages(messages: Iterable[Numbered | None]) -> list[int]:
    return [message.number for message in messages if message is not None]


def after(wait: Callable[[], object], read: Read) -> Read:
    """Return what waits before each read."""

    def waited() -> Iterable[int]:
        with contextlib.suppress(quire.errors.WaitTimeoutError):
            wait()
        return read()

    return waited


def of_document(tailer: quire.JournalTailer) -> list[int]:
    with tailer.reading_document() as document:
        return numbers_of([bytes(document.bytes)]) if document.is_present else []


def of_batch(tailer: quire.JournalTailer, count: int) -> list[int]:
    rows: list[dict[str, Any]] = tailer.read_batch(count).to_pylist()
    return numbers_of(row["payload"] for row in rows)


def of_columns(tailer: quire.JournalTailer, count: int) -> list[int]:
    rows: list[dict[str, Any]] = tailer.read_batch(count, schema=Numbered).to_pylist()
    return [row["number"] for row in rows]


def by_methods(
    handler: Handler, read: Callable[[MethodReader], object]
) -> Callable[[quire.JournalTailer], Read]:
    def reader(tailer: quire.JournalTailer) -> Read:
        methods = tailer.method_reader(handler)

        def numbers() -> list[int]:
            try:
                read(methods)
            except quire.errors.DataLossError:
                return [*handler.take(), LOST]
            return handler.take()

        return numbers

    return reader


WAYS: dict[str, Way] = {
    "read": lambda it: lambda: of_excerpts([it.read()]),
    "next": lambda it: lambda: of_excerpts(islice(it, 1)),
    "read_bytes": lambda it: lambda: numbers_of([it.read_bytes()]),
    "payloads": lambda it: lambda: numbers_of(islice(it.payloads(), 1)),
    "read_map": lambda it: lambda: [found["number"] for found in [it.read_map()] if found],
    "read_message": lambda it: lambda: of_messages([it.read_message(Numbered)]),
    "read_messages": lambda it: lambda: of_messages(it.read_messages(Numbered, 100)),
    "read_messages, two": lambda it: lambda: of_messages(it.read_messages(Numbered, 2)),
    "read_many": lambda it: lambda: numbers_of(it.read_many(100)),
    "read_many, two": lambda it: lambda: numbers_of(it.read_many(2)),
    "read_batch": lambda it: lambda: of_batch(it, 100),
    "read_batch, two": lambda it: lambda: of_batch(it, 2),
    "columns": lambda it: lambda: of_columns(it, 100),
    "columns, two": lambda it: lambda: of_columns(it, 2),
    "document": lambda it: lambda: of_document(it),
    "follow": lambda it: lambda: of_excerpts(islice(it.follow(0), 1)),
    "follow_messages": lambda it: lambda: of_messages(islice(it.follow_messages(Numbered, 0), 1)),
    "wait": lambda it: after(lambda: it.wait(0), lambda: numbers_of(it.read_many(100))),
    "wait with a pauser": lambda it: after(
        lambda: it.wait(0, pauser=quire.pausers.busy()), lambda: numbers_of([it.read_bytes()])
    ),
    "spin": lambda it: after(lambda: it.spin(0), lambda: numbers_of(it.read_many(100))),
    "aread": lambda it: lambda: of_excerpts([asyncio.run(it.aread(0))]),
    "aread_many": lambda it: lambda: numbers_of(asyncio.run(it.aread_many(100, 0))),
    "aread_message": lambda it: lambda: of_messages([asyncio.run(it.aread_message(Numbered, 0))]),
    "afollow": lambda it: lambda: asyncio.run(next_of(it)),
    "method reader": by_methods(Handler(), lambda it: it.read_one()),
    "method reader, many": by_methods(Handler(), lambda it: it.read_many(100)),
    "method reader, async": by_methods(Handler(), lambda it: asyncio.run(it.aread_one())),
    "coroutines": by_methods(AsyncHandler(), lambda it: asyncio.run(it.aread_one())),
    "run": by_methods(Handler(), lambda it: it.run(until=lambda: True)),
    "arun": by_methods(Handler(), lambda it: asyncio.run(it.arun(until=lambda: True))),
}


async def next_of(tailer: quire.JournalTailer) -> list[int]:
    async for excerpt in tailer.afollow(0):
        return of_excerpts([excerpt])
    return []


def all_of(read: Read) -> list[int]:
    found: list[int] = []
    for _ in range(20):
        try:
            numbers = list(read())
        except quire.errors.DataLossError:
            numbers = [LOST]
        if not numbers:
            break
        found += numbers
    return found


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_reading_meets_the_loss_once_and_goes_on_after_it(
    tailer: quire.JournalTailer, way: str
) -> None:
    assert all_of(WAYS[way](tailer)) == LEFT


@pytest.mark.parametrize("first", WAYS)
def test_a_loss_that_ended_a_batch_is_raised_by_whatever_reads_next(
    tailer: quire.JournalTailer, first: str
) -> None:
    assert numbers_of(tailer.read_many(100)) == [0, 1, 2]
    assert all_of(WAYS[first](tailer)) == LEFT[3:]


def test_a_sleeping_reader_is_woken_by_a_loss_and_raises_it(tailer: quire.JournalTailer) -> None:
    assert numbers_of(tailer.read_many(100)) == [0, 1, 2]
    for _ in range(3):
        assert tailer._sleep(60)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(quire.errors.DataLossError):
        tailer.read_bytes()
    assert numbers_of(tailer.read_many(100)) == [6, 7, 8]


def test_who_goes_back_and_meets_no_loss_any_more_reads_on(tailer: quire.JournalTailer) -> None:
    assert numbers_of(tailer.read_many(100)) == [0, 1, 2]
    with pytest.raises(quire.errors.DataLossError):
        tailer.read_bytes()
    tailer.to_start()
    assert numbers_of(tailer.read_many(100)) == [0, 1, 2, 6, 7, 8]


def test_with_sub_topics_the_loss_is_raised_once(tailer: quire.JournalTailer) -> None:
    tailer.topics("LDN")
    with pytest.raises(quire.errors.DataLossError):
        tailer.read_bytes()
    assert tailer.read_bytes() is None
    tailer.topics()
    assert tailer.read_bytes() is None
