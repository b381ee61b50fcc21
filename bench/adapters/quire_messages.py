"""Quire with messages: calls of a method, objects, columns, and the dump."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import quire
from bench.quire_queues import open_queue
from bench.task import DISTINCT, Outcome, Stopwatch, Task, checksum
from bench.trades import Market, Noted, Trade, trades

_BATCH = 10_000
_NOTE_BYTES = 7
"""A note of 32 to 127 characters takes so many more: its name, its code, its length."""
_TEXT_BYTES = 2
"""So does a text, without the name."""

Loop: TypeAlias = Callable[[int], object]
"""Does it so many times for each of the distinct objects."""
Reader: TypeAlias = Callable[[quire.JournalTailer, int], int]
"""Reads so many messages and returns the sum of the numbers."""


# What the queues must hold: made once, read back, and compared with the objects.


def calls(scratch: Path) -> list[bytes]:
    """Return the messages of the calls with the distinct objects."""
    with open_queue(scratch) as queue, queue.appender() as appender:
        _method_write(appender)(1)
        handler = _Kept()
        with queue.tailer() as tailer:
            reader = tailer.method_reader(handler)
            while reader.read_one():
                pass
        assert handler.found == trades()
        return queue.tailer().read_many(DISTINCT + 1)


def objects(scratch: Path) -> list[bytes]:
    """Return the messages of the distinct objects."""
    return _messages_of(scratch, trades(), Trade)


def noted(scratch: Path, size: int) -> list[bytes]:
    """Return messages of the objects with a note that makes them so long."""
    short = objects(scratch / "short")
    long = [
        Noted(one.symbol, one.id, one.price, one.quantity, one.side, "x" * left)
        for one, message in zip(trades(), short, strict=True)
        for left in [size - len(message) - _NOTE_BYTES]
    ]
    found = _messages_of(scratch / "long", long, Noted)
    assert {len(message) for message in found} == {size}
    return found


def texts(scratch: Path, size: int) -> list[bytes]:
    """Return messages of a text that is so long with its code and its length."""
    wanted = [f"text {number:04} " + "x" * size for number in range(DISTINCT)]
    with open_queue(scratch) as queue, queue.appender() as appender:
        for text in wanted:
            appender.write_text(text[: size - _TEXT_BYTES])
        found = queue.tailer().read_many(DISTINCT + 1)
    assert [len(message) for message in found] == [size] * DISTINCT
    return found


DUMPED = {"texts": texts, "objects": noted}
"""The messages of the queues that are dumped."""


def _messages_of(
    scratch: Path, wanted: list[Trade] | list[Noted], cls: type[Trade | Noted]
) -> list[bytes]:
    with open_queue(scratch) as queue, queue.appender() as appender:
        for one in wanted:
            appender.write_message(one)
        tailer = queue.tailer()
        assert [tailer.read_message(cls) for _ in wanted] == wanted
        return queue.tailer().read_many(DISTINCT + 1)


class _Kept:
    def __init__(self) -> None:
        self.found: list[Trade] = []

    def trade(self, trade: Trade) -> None:
        self.found.append(trade)


def fill(path: Path, distinct: Iterable[bytes], rounds: int) -> None:
    """Write the distinct messages so many times."""
    pool = list(distinct)
    with open_queue(path) as queue, queue.appender() as appender:
        for _ in range(rounds):
            appender.write_many(pool)


def verify(path: Path, distinct: list[bytes], rounds: int) -> None:
    """Compare every byte of a queue, whoever wrote it, with the messages it must hold."""
    with open_queue(path, read_only=True) as queue:
        tailer = queue.tailer()
        for _ in range(rounds):
            assert tailer.read_many(DISTINCT) == distinct, f"other messages: index={tailer.index}"
        assert tailer.read() is None, f"too many messages: index={tailer.index}"


# Writing.


def _method_write(appender: quire.JournalAppender) -> Loop:
    call, objects = appender.method_writer(Market).trade, trades()

    def loop(rounds: int) -> None:
        for _ in range(rounds):
            for trade in objects:
                call(trade)

    return loop


def _write_message(appender: quire.JournalAppender) -> Loop:
    write, objects = appender.write_message, trades()

    def loop(rounds: int) -> None:
        for _ in range(rounds):
            for trade in objects:
                write(trade)

    return loop


def _write(task: Task, prepare: Callable[[quire.JournalAppender], Loop]) -> Outcome:
    with open_queue(task.queue) as queue, queue.appender() as appender:
        loop = prepare(appender)
        loop(task.warm_up // DISTINCT)
        with Stopwatch() as watch:
            loop(task.count // DISTINCT)
        assert queue.entry_count == task.total
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


# Reading: the warm-up first, and on from there.


class _Sum:
    def __init__(self) -> None:
        self.total = 0

    def trade(self, trade: Trade) -> None:
        self.total += trade.id


def _method_read(tailer: quire.JournalTailer, count: int) -> int:
    handler = _Sum()
    read_one = tailer.method_reader(handler).read_one
    for _ in range(count):
        assert read_one()
    return handler.total


def _read_message(tailer: quire.JournalTailer, count: int) -> int:
    read, total = tailer.read_message, 0
    for _ in range(count):
        trade = read(Trade)
        assert trade is not None
        total += trade.id
    return total


def _columns(tailer: quire.JournalTailer, count: int) -> int:
    import pyarrow.compute as pc

    schema, total = quire.Schema.from_methods(Market), 0
    for _ in range(0, count, _BATCH):
        batch = tailer.read_batch(_BATCH, schema=schema, method="trade")
        assert batch.schema.names == ["index", *Trade.__dataclass_fields__]
        total += pc.sum(batch.column("id")).as_py()
    return total


def _read(task: Task, read: Reader) -> Outcome:
    with open_queue(task.queue) as queue, queue.tailer() as tailer:
        assert read(tailer, task.warm_up) == checksum(task.warm_up)
        with Stopwatch() as watch:
            total = read(tailer, task.count)
        assert tailer.read() is None
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, total)


# The dump of the whole directory, so many times. The checksum is the number of its bytes.


class _Counting:
    total = 0

    def write(self, text: str, /) -> object:
        self.total += len(text)
        return None


def _dump(task: Task) -> Outcome:
    with open_queue(task.queue, read_only=True) as queue:
        for _ in range(task.warm_up):
            queue.dump(_Counting())
        counting = _Counting()
        with Stopwatch() as watch:
            for _ in range(task.count):
                queue.dump(counting)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, counting.total)


_SHOWN = r"^--- !!data #binary\n(?:symbol: (?:.*\n){5}note: x{32,}|text \d{4} x{80,})\n\n"


def dumped_bytes(path: Path, count: int) -> int:
    """Return how long the text of a queue is, and see that it shows all messages."""
    with open_queue(path, read_only=True) as queue:
        text = queue.dump()
    found = len(re.findall(_SHOWN, text, re.MULTILINE))
    assert found == count, f"found={found} count={count}"
    return len(text.encode())


OPERATIONS: dict[str, Callable[[Task], Outcome]] = {
    "method_write": lambda task: _write(task, _method_write),
    "write_message": lambda task: _write(task, _write_message),
    "method_read": lambda task: _read(task, _method_read),
    "read_message": lambda task: _read(task, _read_message),
    "columns": lambda task: _read(task, _columns),
    "dump": _dump,
}
