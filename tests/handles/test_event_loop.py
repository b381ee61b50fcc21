"""Queues in an event loop: a backlog and a held lock keep no other task from running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import quire
from event_loops import held, ticking
from parameters import some
from queues import UNLOCKED, WRITE_LOCK, payloads, poke
from quire._waiting import async_reading
from quire.calls import method_reader

BACKLOG = 400_000
DEAD_PID = 2**22 + 1  # above the greatest pid there can be


@quire.message(alias="EventLoopTrade")
@dataclass
class Trade:
    number: int = 0


@pytest.fixture
def slow_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a turn on the loop pass between any two looks at the clock, however fast the machine."""
    for module in (async_reading, method_reader):
        monkeypatch.setattr(module, "monotonic", count().__next__)


@pytest.fixture
def big(path: Path) -> Iterator[quire.JournalQueue]:
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=2**22) as queue:
        yield queue


@pytest.mark.usefixtures("slow_reads")
@pytest.mark.parametrize("how", some(["async for", "afollow", "afollow_messages"], keep=[2]))
def test_a_backlog_keeps_no_task_waiting(how: str, big: quire.JournalQueue) -> None:
    appender = big.appender()
    number = BACKLOG // 8
    if how == "afollow_messages":
        number = BACKLOG // 32
        appender.write_message(Trade())
        message = big.tailer().read_bytes() or b""
        appender.write_many([message] * (number - 1))
    else:
        appender.write_many([b"x"] * number)

    async def main() -> int:
        tailer = big.tailer()
        reads: dict[str, Callable[[], AsyncIterator[Any]]] = {
            "async for": tailer.__aiter__,
            "afollow": tailer.afollow,
            "afollow_messages": lambda: tailer.afollow_messages(Trade),
        }
        numbers = count(1)
        async with ticking() as ticks:
            async for _ in reads[how]():
                if next(numbers) == number:
                    break
            return ticks.count

    assert asyncio.run(main()) > 5


def test_a_scan_for_a_topic_keeps_no_task_waiting(big: quire.JournalQueue) -> None:
    other = quire.types.parse_yaml("to: other\nother: x\n")
    big.appender().write_many([other] * BACKLOG)
    big.appender().topic("wanted").write_bytes(b"found")

    async def main() -> tuple[bytes, int]:
        async with ticking() as ticks:
            async for excerpt in big.tailer().topics("wanted"):
                return excerpt.data, ticks.count
        raise AssertionError

    found, ticks = asyncio.run(main())
    assert found == b"found"
    assert ticks >= BACKLOG // 65_536 - 1


@pytest.mark.usefixtures("slow_reads")
def test_handlers_of_a_backlog_keep_no_task_waiting(big: quire.JournalQueue) -> None:
    class Handler:
        def number(self, number: int) -> None: ...

    big.appender().write_many([quire.types.parse_yaml("number: 1")] * (BACKLOG // 4))

    async def main() -> int:
        tailer = big.tailer()
        reader = tailer.method_reader(Handler())
        async with ticking() as ticks:
            await reader.arun(until=lambda: tailer.read() is None)
            return ticks.count

    assert asyncio.run(main()) > 5


def record_batch() -> Any:  # noqa: ANN401 - of pyarrow
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"number": [1, 2]})


WRITES: dict[str, tuple[Callable[[quire.JournalAppender], Awaitable[int | None]], int]] = {
    "bytes": (lambda appender: appender.awrite_bytes(b"x"), 1),
    "text": (lambda appender: appender.awrite_text("x"), 1),
    "map": (lambda appender: appender.awrite_map({"a": 1}), 1),
    "message": (lambda appender: appender.awrite_message(Trade(5), typed=True), 1),
    "yaml": (lambda appender: appender.awrite_yaml("a: 1"), 1),
    "json": (lambda appender: appender.awrite_json('{"a": 1}'), 1),
    "many": (lambda appender: appender.awrite_many(b"%d" % it for it in range(25_000)), 25_000),
    "list": (lambda appender: appender.awrite_many([b"1", b"2"]), 2),
    "batch": (lambda appender: appender.awrite_batch(record_batch()), 2),
    "array": (lambda appender: appender.awrite_batch(record_batch()["number"].cast("string")), 2),
    "topic bytes": (lambda appender: appender.topic("t").awrite_bytes(b"x"), 1),
    "topic text": (lambda appender: appender.topic("t").awrite_text("x"), 1),
    "topic map": (lambda appender: appender.topic("t").awrite_map({"a": 1}), 1),
    "topic message": (lambda appender: appender.topic("t").awrite_message(Trade(5)), 1),
}


@pytest.mark.parametrize("name", WRITES)
def test_an_append_waits_for_a_lock_while_the_loop_runs(name: str, big: quire.JournalQueue) -> None:
    appender = big.appender()
    write, number = WRITES[name]

    async def main() -> int | None:
        async with ticking() as ticks:
            task = asyncio.ensure_future(write(appender))
            await ticks.more()
            assert not task.done()
            let_go()
            return await task

    with held(big) as let_go:
        last = asyncio.run(main())
    assert big.entry_count == 1 + number
    assert last == big.last_index
    assert payloads(big)[0] == b"held"


@pytest.mark.parametrize("name", WRITES)
def test_an_append_that_need_not_wait_is_done_at_once(name: str, big: quire.JournalQueue) -> None:
    appender = big.appender()
    write, number = WRITES[name]

    async def main() -> int | None:
        threads = threading.active_count()
        last = await write(appender)
        assert threading.active_count() <= threads
        return last

    assert asyncio.run(main()) == big.last_index
    assert big.entry_count == number


@pytest.mark.parametrize("name", WRITES)
def test_a_cancelled_append_writes_nothing(name: str, big: quire.JournalQueue) -> None:
    appender = big.appender()
    write, _ = WRITES[name]

    async def main() -> None:
        async with ticking() as ticks:
            task = asyncio.ensure_future(write(appender))
            await ticks.more()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            let_go()
            await ticks.more()

    with held(big) as let_go:
        asyncio.run(main())
    assert payloads(big) == [b"held"]
    appender.write_bytes(b"after")
    assert payloads(big) == [b"held", b"after"]


def test_an_append_waits_for_the_document_of_another_task(big: quire.JournalQueue) -> None:
    async def hold(opened: asyncio.Event, close: asyncio.Event) -> None:
        with big.appender().writing_document() as document:
            document.write_bytes(b"held")
            opened.set()
            await close.wait()

    async def main() -> None:
        opened, close = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(opened, close))
        await opened.wait()
        async with ticking() as ticks:
            writer = asyncio.create_task(big.appender().awrite_bytes(b"after"))
            await ticks.more()
            assert not writer.done()
        close.set()
        await asyncio.gather(holder, writer)

    asyncio.run(main())
    assert payloads(big) == [b"held", b"after"]


def test_an_append_gives_up_after_the_timeout(path: Path) -> None:
    with quire.open(path, timeout_s=0.1) as queue, held(queue) as let_go:
        appender = queue.appender()
        with pytest.raises(
            quire.errors.LockTimeoutError, match=r"waited_ms=(1[5-9]\d|[2-9]\d\d|\d{4})"
        ):
            asyncio.run(appender.awrite_bytes(b"in vain"))
        let_go()
        assert payloads(queue) == [b"held"]


def test_an_append_takes_the_lock_of_a_dead_process(path: Path, big: quire.JournalQueue) -> None:
    appender = big.appender()
    poke(path, WRITE_LOCK, DEAD_PID)
    asyncio.run(appender.awrite_bytes(b"after"))
    assert payloads(big) == [b"after"]
    assert big.table_value(WRITE_LOCK) == UNLOCKED


def test_appends_that_wait_in_one_loop_all_come(big: quire.JournalQueue) -> None:
    appender = big.appender()

    async def main() -> None:
        tasks = [asyncio.create_task(appender.awrite_bytes(b"%d" % it)) for it in range(50)]
        async with ticking() as ticks:
            await ticks.more()
            let_go()
        await asyncio.gather(*tasks)

    with held(big) as let_go:
        asyncio.run(main())
    assert sorted(payloads(big)) == sorted([b"held", *(b"%d" % it for it in range(50))])


def test_a_message_that_cannot_be_written_is_no_wait(big: quire.JournalQueue) -> None:
    appender = big.appender()
    with pytest.raises(ValueError, match="at least one"):
        asyncio.run(appender.awrite_map({}))
    with pytest.raises(quire.errors.MessageTooLargeError):
        asyncio.run(appender.awrite_bytes(bytes(2**21)))
    appender.write_bytes(b"goes on")
    assert payloads(big) == [b"goes on"]


@pytest.mark.parametrize("limit", [None, 1, 5])
def test_awaited_appends_keep_the_order_of_their_calls(limit: int | None, path: Path) -> None:
    async def main(queue: quire.JournalQueue) -> None:
        appender = queue.appender(limit=limit)
        with quire.open(path) as other, other.appender().writing_document() as document:
            document.write("first", 1)
            tasks = [asyncio.create_task(_numbered(appender, number)) for number in range(60)]
            for _ in range(30):
                await asyncio.sleep(0.000_5)
        await asyncio.gather(*tasks)

    async def _numbered(appender: quire.JournalAppender, number: int) -> None:
        if number % 10:
            await appender.awrite_bytes(b"%d" % number)
        else:
            await appender.awrite_many([str(number).encode()])

    with quire.open(path) as queue:
        asyncio.run(main(queue))
        found = [bytes(payload) for payload in queue.tailer().payloads()][1:]
    assert found == [b"%d" % number for number in range(60)]
