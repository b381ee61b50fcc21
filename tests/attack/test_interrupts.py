"""KeyboardInterrupt and cancelled tasks: in an append, a document, a bulk write, a read."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

import pytest

import quire
import quire_peer
from queues import UNLOCKED, WRITE_LOCK, payloads, problems_of
from tally import RUN, Tally, scaled

pytestmark = pytest.mark.slow

PROMISE = "An interrupt leaves a prefix of the requested writes"


def interrupted(work: Callable[[], object], after_s: float) -> None:
    """Run *work* without end until SIGINT comes after some time."""

    def for_ever() -> None:
        timer.start()
        while True:
            work()

    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            for_ever()
    finally:
        timer.join()


def times(seed: str) -> Iterator[float]:
    """Yield moments for interrupts, the same in each run of `make check`."""
    rng = random.Random(f"{seed}{RUN or ''}")  # noqa: S311 - a seed, so that a failure comes again
    return (rng.uniform(0.001, 0.02) for _ in range(scaled(15, 1000)))


def test_in_an_append_that_waits_for_the_lock(queue: quire.JournalQueue, path: Path) -> None:
    appender = queue.appender()
    appender.write_bytes(b"first")
    with quire_peer.start("produce", dir=path, count=0, hold="document") as holder:
        holder.expect("READY")
        holder.expect("HOLDING")
        for write in (
            lambda: appender.write_bytes(b"one"),
            lambda: appender.write_many([b"one"]),
            appender.writing_document,
            appender.normalise_eofs,
        ):
            interrupted(write, 0.05)
        assert payloads(queue) == [b"first"]
        holder.ask("")
    appender.write_bytes(b"after")
    assert payloads(queue) == [b"first", b"half a message", b"after"]


def test_in_a_document_it_is_rolled_back(path: Path, tally: Tally) -> None:
    numbers = count()
    with quire.open(path, block_bytes=1) as queue, queue.appender() as appender:

        def write() -> None:
            number = next(numbers)
            with appender.writing_document() as document:
                document.write_bytes(b"%d-" % number)
                document.write_bytes(b"%d" % number)

        moments = [*times("document")]
        for after_s in moments:
            interrupted(write, after_s)
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
        found = [int(it.split(b"-")[0]) for it in payloads(queue)]
        assert found == sorted(set(found))
        assert all(it == b"%d-%d" % (n, n) for n, it in zip(found, payloads(queue), strict=True))
    assert problems_of(path) == []
    tally(PROMISE, len(moments), "interrupts of documents")


@pytest.mark.parametrize("how", ["list", "iterator"])
def test_in_a_bulk_write_a_prefix_stays(how: str, path: Path, tally: Tally) -> None:
    moments = [*times(how)]
    for number, after_s in enumerate(moments):
        with quire.open(path / str(number), roll_cycle="FAST_DAILY", block_bytes=1) as queue:
            appender, numbers = queue.appender(), count()

            def write(
                appender: quire.JournalAppender = appender, numbers: Iterator[int] = numbers
            ) -> None:
                some = (b"%d" % number for number in islice(numbers, 30_000))
                appender.write_many([*some] if how == "list" else some)

            interrupted(write, after_s)
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
            found = payloads(queue)
            written = [b"%d" % it for it in range(len(found))]
            assert found == written
            assert len(found) <= next(numbers)
            appender.write_bytes(b"after")
            assert queue.entry_count == len(found) + 1
        assert problems_of(path / str(number)) == []
    tally(PROMISE, len(moments), f"interrupts of bulk writes of a {how}")


READS: dict[str, Callable[[quire.JournalTailer], Iterator[bytes]]] = {
    "read": lambda tailer: iter([it.data for it in [tailer.read()] if it]),
    "read_many": lambda tailer: iter(tailer.read_many(100)),
    "payloads": lambda tailer: tailer.payloads(),
    "iteration": lambda tailer: (it.data for it in tailer),
    "follow": lambda tailer: (it.data for it in tailer.follow(0.001)),
}


@pytest.mark.parametrize("name", READS)
def test_in_a_read_nothing_is_passed_over_and_nothing_comes_again(
    name: str, path: Path, tally: Tally
) -> None:
    messages = [b"%d" % number for number in range(50_000)]
    with quire.open(path, block_bytes=2**20, roll_cycle="FAST_DAILY") as queue:
        queue.appender().write_many(messages)
        first = queue.first_index or 0
        moments = [*times(name)]
        for after_s in moments:
            tailer, seen = queue.tailer(), list[bytes]()

            def read(tailer: quire.JournalTailer = tailer, seen: list[bytes] = seen) -> None:
                for it in READS[name](tailer):
                    seen.append(it)  # noqa: PERF402 - an interrupt may come between the two

            interrupted(read, after_s)
            # What was taken and not kept was lost between the two statements above, not before.
            taken = tailer.index - first if seen else 0
            assert seen == messages[: len(seen)]
            assert taken - len(seen) <= (100 if name == "read_many" else 1)
            assert list(tailer.payloads())[:5] == messages[taken : taken + 5] or not seen
    tally("An interrupt does not lose a tailer's position", len(moments), f"interrupts of {name}")


def test_tasks_of_one_loop_append_and_tail(queue: quire.JournalQueue) -> None:
    tasks, rounds = 8, 50

    async def write(task: int) -> None:
        with queue.appender() as appender:
            for number in range(rounds):
                appender.write_bytes(b"%d %d" % (task, number))
                await asyncio.sleep(0)

    async def read() -> list[bytes]:
        found: list[bytes] = []
        with queue.tailer() as tailer:
            async for excerpt in tailer:
                found.append(excerpt.data)
                if len(found) == tasks * rounds:
                    break
        return found

    async def main() -> list[list[bytes]]:
        readers = [asyncio.create_task(read()) for _ in range(3)]
        await asyncio.gather(*[write(task) for task in range(tasks)])
        return await asyncio.gather(*readers)

    for found in asyncio.run(main()):
        for task in range(tasks):
            own = [it for it in found if it.startswith(b"%d " % task)]
            assert own == [b"%d %d" % (task, number) for number in range(rounds)]


def test_a_task_that_appends_while_another_has_a_document_open_is_reported(
    queue: quire.JournalQueue,
) -> None:
    async def hold(opened: asyncio.Event, close: asyncio.Event) -> None:
        with queue.appender().writing_document() as document:
            document.write_bytes(b"held")
            opened.set()
            await close.wait()

    async def main() -> None:
        opened, close = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(opened, close))
        await opened.wait()
        with pytest.raises(quire.QuireError, match="a document is open in this thread"):
            queue.appender().write_bytes(b"in vain")
        close.set()
        await holder
        queue.appender().write_bytes(b"after")

    asyncio.run(main())
    assert payloads(queue) == [b"held", b"after"]


def test_a_cancelled_task_rolls_its_document_back_and_keeps_its_place(
    queue: quire.JournalQueue,
) -> None:
    appender, tailer = queue.appender(), queue.tailer()
    seen: list[bytes] = []

    async def write() -> None:
        with appender.writing_document() as document:
            document.write_bytes(b"never")
            await asyncio.sleep(60)

    async def read() -> None:
        async for excerpt in tailer:
            seen.append(excerpt.data)  # noqa: PERF401 - what came before the cancelling stays

    async def main() -> None:
        for number in range(30):
            reader = asyncio.create_task(read())
            writer = asyncio.create_task(write())
            await asyncio.sleep(0.001)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
            appender.write_bytes(b"%d" % number)
            await asyncio.sleep(0.001 * (number % 3))
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    asyncio.run(main())
    seen.extend(tailer.payloads())
    assert seen == [b"%d" % number for number in range(30)]
