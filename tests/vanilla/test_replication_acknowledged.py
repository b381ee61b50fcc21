"""A reader at the source sees what the sinks have acknowledged, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from quire.vanilla.replication import Sink, Source
from quire.vanilla.replication.replica import Replica
from quire.vanilla.replication.wire_frames import Run
from replication_wire import (
    CAPTURED_MS,
    DAY_MS,
    FILES,
    FIRST_CAPTURED,
    SMALL,
    acknowledge,
    contents,
    echo,
    run,
    subscribe,
)


@pytest.fixture
def clock() -> quire.ManualClock:
    return quire.ManualClock(CAPTURED_MS)


@pytest.fixture
def queue(tmp_path: Path, clock: quire.ManualClock) -> Iterator[quire.vanilla.VanillaQueue]:
    with open_vanilla(tmp_path / "source", clock=clock, **SMALL) as queue:
        queue.appender().write_many([b"one", b"two", b"three"])
        yield queue


class Acknowledger:
    """A sink that acknowledges what a test tells it to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, source: Source, *requests: bytes) -> Acknowledger:
        reader, writer = await asyncio.open_connection(*source.address)
        writer.write(b"".join((*requests, subscribe(-1))))
        assert await reader.readexactly(12) == echo(-1)
        return cls(reader, writer)

    def acknowledge(self, number: int) -> None:
        self.writer.write(acknowledge(FIRST_CAPTURED + number))

    async def close(self, source: Source) -> None:
        """Close the connection, and return when the source has noticed."""
        count = len(source.sinks)
        self.writer.close()
        while len(source.sinks) == count:  # noqa: ASYNC110 - nothing says when
            await asyncio.sleep(0.01)


async def is_waiting(task: asyncio.Task[Any]) -> bool:
    """Whether a task that must not end has not ended: seen for a while."""
    await asyncio.wait({task}, timeout=0.1)
    return not task.done()


def started(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.create_task(coroutine)


def test_nothing_is_seen_before_every_sink_has_it(queue: quire.vanilla.VanillaQueue) -> None:
    async def read() -> None:
        async with Source(queue) as source:
            messages = source.acknowledged(queue.tailer())

            async def following() -> bytes:
                return (await anext(messages)).data

            first = started(following())
            assert await is_waiting(first)
            quick = await Acknowledger.connect(source, acknowledge(-1))
            slow = await Acknowledger.connect(source, acknowledge(-1))
            quick.acknowledge(2)
            assert await is_waiting(first)
            slow.acknowledge(0)
            assert await first == b"one"
            second = started(following())
            assert await is_waiting(second)
            await slow.close(source)
            assert await second == b"two"
            assert await following() == b"three"
            await quick.close(source)
            queue.appender().write_bytes(b"four")
            fourth = started(following())
            assert await is_waiting(fourth)
            fourth.cancel()

    run(read())


def test_at_least_so_many_sinks_must_have_a_message(queue: quire.vanilla.VanillaQueue) -> None:
    async def read() -> None:
        async with Source(queue) as source:
            one = await Acknowledger.connect(source, acknowledge(FIRST_CAPTURED + 2))
            waiting = started(source.stored(FIRST_CAPTURED + 2, sinks=2))
            assert await is_waiting(waiting)
            two = await Acknowledger.connect(source, acknowledge(FIRST_CAPTURED + 2))
            await waiting
            await one.close(source)
            await two.close(source)

    run(read())


def test_a_sink_that_does_not_acknowledge_is_reported(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    async def read() -> None:
        async with (
            Source(queue) as source,
            Sink(tmp_path / "copy", port=source.address[1], files=FILES) as sink,
        ):
            await sink.stored(FIRST_CAPTURED + 2)
            with pytest.raises(quire.errors.UnsupportedError, match="a subscribed sink does not"):
                await anext(source.acknowledged(queue.tailer()))
            [status] = source.sinks
            assert status.peer.startswith("127.0.0.1:")
            assert (status.sent_index, status.acknowledged_index) == (FIRST_CAPTURED + 2, None)

    run(read())


def test_a_named_tailer_resumes_among_acknowledged_messages(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    async def read(count: int) -> list[bytes]:
        async with (
            Source(queue) as source,
            Sink(
                tmp_path / "copy",
                port=source.address[1],
                acknowledge=True,
                files=FILES,
            ),
        ):
            with queue.tailer("risk") as tailer:
                messages = source.acknowledged(tailer)
                return [(await anext(messages)).data for _ in range(count)]

    assert run(read(2)) == [b"one", b"two"]
    queue.appender().write_bytes(b"four")
    assert run(read(2)) == [b"three", b"four"]


def test_a_late_message_is_not_taken_for_acknowledged(
    queue: quire.vanilla.VanillaQueue, clock: quire.ManualClock
) -> None:
    """Its index is lower than that of what the sink has."""
    slow, quick = queue.appender(), queue.appender()
    clock.advance(DAY_MS)
    newer = quick.write_bytes(b"newer")
    clock.advance(-DAY_MS)
    late = slow.write_bytes(b"late")

    async def read() -> None:
        async with Source(queue) as source:
            ends = acknowledge(FIRST_CAPTURED + 2) + acknowledge(newer)
            sink = await Acknowledger.connect(source, ends)
            await source.stored(newer)
            waiting = started(source.stored(late))
            assert await is_waiting(waiting)
            sink.acknowledge(3)
            await waiting
            await sink.close(source)

    run(read())


def test_acknowledgements_of_real_sinks(queue: quire.vanilla.VanillaQueue, tmp_path: Path) -> None:
    async def read() -> list[bytes]:
        async with (
            Source(queue) as source,
            Sink(tmp_path / "1", port=source.address[1], acknowledge=True, files=FILES),
            Sink(
                tmp_path / "2",
                port=source.address[1],
                acknowledge=True,
                synchronous=True,
                files=FILES,
            ),
        ):
            found = list[bytes]()
            async for excerpt in source.acknowledged(queue.tailer(), sinks=2):
                found.append(excerpt.data)
                for name in ("1", "2"):
                    with quire.open(tmp_path / name, format="vanilla") as copy:
                        assert (excerpt.index, excerpt.data) in contents(copy)
                if len(found) == 5:
                    break
                queue.appender().write_bytes(b"more")
            return found

    assert run(read()) == [b"one", b"two", b"three", b"more", b"more"]


@pytest.mark.check
def test_looking_for_a_message_while_others_are_stored_does_no_harm(tmp_path: Path) -> None:
    replica = Replica(tmp_path / "copy", {"files": FILES})
    messages = Run(FIRST_CAPTURED, [b"x" * length for length in range(1, 6)])
    replica.store(messages)
    is_done = threading.Event()

    def look() -> None:
        while not is_done.is_set():
            assert all(replica.has(index) for index in range(messages.first, messages.last + 1))

    with ThreadPoolExecutor(1) as threads:
        looking = threads.submit(look)
        try:
            for _ in range(2000):
                replica.store(messages)  # compares what is there
        finally:
            is_done.set()
        looking.result()
    replica.close()


def test_no_connection_outlives_a_source(queue: quire.vanilla.VanillaQueue) -> None:
    async def scenario() -> None:
        async with Source(queue) as source:
            connection = socket.create_connection(source.address)
            while not source.sinks:  # noqa: ASYNC110 - turn by turn
                await asyncio.sleep(0)
        # Its task was cancelled before it began.
        assert not source.sinks
        with connection:
            connection.settimeout(0)
            assert await asyncio.get_running_loop().sock_recv(connection, 1) == b""

    run(scenario())
