"""Replication with Java's Chronicle 3.6.4 as source, as sink, and as remote appender."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from java_peer import JavaPeer, JavaProcess, Option
from ports import free_port
from quire.vanilla.replication import BlockingRemoteAppender, RemoteAppender, Sink, Source
from replication_wire import DAY_MS, WAIT_S, Cutter, listening, run
from vanilla_java import DATA_BLOCK, INDEX_BLOCK, JAVA_BLOCKS, vanilla_java, vanilla_queue

pytestmark = pytest.mark.java

# Java reads no cycle of the future.
START_CYCLE = time.time_ns() // 1_000_000 // DAY_MS - 1
START_MS = START_CYCLE * DAY_MS
FILES = quire.vanilla.FileOptions(
    tid_bits=22, index_block_bytes=INDEX_BLOCK, data_block_bytes=DATA_BLOCK
)


@pytest.fixture(scope="module")
def java() -> JavaPeer:
    return vanilla_java()


class JavaSource:
    """Java's source. Quire appends to its queue, which several processes may do."""

    def __init__(self, java: JavaPeer, path: Path, port: int = 0) -> None:
        self.process = java.start("source", dir=path, port=port, heartbeat_ms=100, **JAVA_BLOCKS)
        words = (self.process.read_line() or "").split()
        assert words[0] == "LISTENING"
        self.port = int(words[1])
        self._path = path

    def append(self, payloads: list[bytes], at_ms: int = START_MS) -> int:
        """Append messages; the last index."""
        with (
            vanilla_queue(self._path, clock=quire.ManualClock(at_ms)) as queue,
            queue.appender() as appender,
        ):
            return appender.write_many(payloads) or 0


@asynccontextmanager
async def sink_of(path: Path, port: int, **options: Any) -> AsyncGenerator[Sink]:  # noqa: ANN401
    async with Sink(
        path, port=port, reconnect_s=0.01, silence_s=WAIT_S, files=FILES, **options
    ) as sink:
        yield sink


def contents(path: Path) -> list[tuple[int, bytes]]:
    with vanilla_queue(path, read_only=True) as queue:
        return [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]


def numbered(count: int, size: int = 40) -> list[bytes]:
    return [bytes([number % 256]) * (1 + number % size) for number in range(count)]


def test_a_sink_of_a_java_source_is_cut_and_resumes(java: JavaPeer, tmp_path: Path) -> None:
    cycles: list[int] = []
    source = JavaSource(java, tmp_path / "source")

    async def replicated() -> None:
        cutter = Cutter(source.port, frames=[0, 5, 12, 300, 1000, 5000, 7000], requests=[9])
        async with (
            listening(cutter.serve) as port,
            sink_of(tmp_path / "copy", port, on_cycle=cycles.append) as sink,
        ):
            await sink.stored(source.append(numbered(500)))
            await sink.stored(source.append(numbered(500), START_MS + DAY_MS))
            await sink.in_sync()
        assert cutter.connections >= 8

    with source.process:
        run(replicated())
    assert contents(tmp_path / "copy") == contents(tmp_path / "source")
    assert len(contents(tmp_path / "copy")) == 1000
    assert cycles == [START_CYCLE, START_CYCLE + 1]


def test_a_late_message_of_a_java_source_is_not_missed(java: JavaPeer, tmp_path: Path) -> None:
    source = JavaSource(java, tmp_path / "source")

    async def kept(last: int) -> None:
        async with sink_of(tmp_path / "copy", source.port) as sink:
            await sink.stored(last)

    with source.process:
        source.append([b"one"])
        run(kept(source.append([b"new", b"newer"], START_MS + DAY_MS)))
        late = source.append([b"late"])
        run(kept(late))
    assert contents(tmp_path / "copy") == contents(tmp_path / "source")
    assert len(contents(tmp_path / "copy")) == 4


def test_a_java_source_is_killed_and_starts_again(java: JavaPeer, tmp_path: Path) -> None:
    source = JavaSource(java, tmp_path / "source", free_port())

    async def replicated(first: JavaSource) -> None:
        async with sink_of(tmp_path / "copy", first.port) as sink:
            await sink.stored(first.append(numbered(50)))
            first.append(numbered(50))
            first.process.kill()
            first.process.close()
            again = JavaSource(java, tmp_path / "source", first.port)
            with again.process:
                await sink.stored(again.append(numbered(50)))

    run(replicated(source))
    assert contents(tmp_path / "copy") == contents(tmp_path / "source")
    assert len(contents(tmp_path / "copy")) == 150


def test_a_java_source_refuses_acknowledgements(java: JavaPeer, tmp_path: Path) -> None:
    source = JavaSource(java, tmp_path / "source")

    async def refused() -> None:
        with pytest.raises(quire.errors.PeerLostError):
            async with sink_of(
                tmp_path / "copy", source.port, acknowledge=True, attempts=2
            ) as sink:
                await sink.run_forever()

    with source.process:
        source.append([b"one"])
        run(refused())


def test_messages_submitted_to_a_java_source(java: JavaPeer, tmp_path: Path) -> None:
    source = JavaSource(java, tmp_path / "source")

    async def submitted() -> list[int]:
        async with RemoteAppender(port=source.port, timeout_s=WAIT_S) as appender:
            await appender.write_bytes_unacknowledged(b"unacknowledged")
            return [await appender.write_bytes(payload) for payload in numbered(20)]

    with source.process:
        indexes = run(submitted())
    found = contents(tmp_path / "source")
    assert found[1:] == [*zip(indexes, numbered(20), strict=True)]
    assert found[0][1] == b"unacknowledged"


async def read_lines(process: JavaProcess, count: int) -> list[tuple[int, bytes]]:
    """What a Java sink prints of its copy."""
    lines = [await asyncio.to_thread(process.read_line) for _ in range(count)]
    words = [(line or "").split(" ") for line in lines]
    return [(int(index, 16), bytes.fromhex(payload)) for index, _, payload in words]


def test_java_sinks_get_what_a_source_has(java: JavaPeer, tmp_path: Path) -> None:
    """Messages of every length, some shorter than what Java's sink waits for, in two cycles."""
    clock = quire.ManualClock(START_MS)
    payloads = [*numbered(300), b"x" * 60_000, b"y" * 7, b"z"]

    async def replicated(
        queue: quire.vanilla.VanillaQueue, appender: quire.vanilla.VanillaAppender
    ) -> None:
        async with Source(queue, heartbeat_s=0.1) as source:
            # They wait for one more than there will be.
            options = {"port": source.address[1], "count": len(payloads) + 4}
            sinks = [
                java.start("sink", dir=tmp_path / f"copy{number}", **options, **JAVA_BLOCKS)
                for number in range(2)
            ]
            with sinks[0], sinks[1]:
                for sink in sinks:
                    await asyncio.to_thread(sink.expect, "READY")
                appender.write_many(payloads)
                clock.advance(DAY_MS)
                appender.write_many([b"new cycle", b"1", b"22"])
                expected = [(it.index, it.data) for it in queue.tailer()]
                for sink in sinks:
                    assert await read_lines(sink, len(expected)) == expected
                with pytest.raises(quire.errors.UnsupportedError, match="does not acknowledge"):
                    await source.stored(expected[0][0])

    with vanilla_queue(tmp_path / "source", clock=clock) as queue, queue.appender() as appender:
        run(replicated(queue, appender))
    for number in range(2):
        assert contents(tmp_path / f"copy{number}") == contents(tmp_path / "source")


def test_a_java_sink_is_killed_and_resumes(java: JavaPeer, tmp_path: Path) -> None:
    async def replicated(
        queue: quire.vanilla.VanillaQueue, appender: quire.vanilla.VanillaAppender
    ) -> None:
        async with Source(queue, heartbeat_s=0.1) as source:
            where: dict[str, Option] = {"dir": tmp_path / "copy", "port": source.address[1]}
            for _ in range(3):
                appender.write_many(numbered(50))
                expected = [(it.index, it.data) for it in queue.tailer()]
                with java.start("sink", count=1000, **where, **JAVA_BLOCKS) as sink:
                    await asyncio.to_thread(sink.expect, "READY")
                    # It begins with what it has.
                    assert await read_lines(sink, len(expected)) == expected

    with vanilla_queue(tmp_path / "source") as queue, queue.appender() as appender:
        run(replicated(queue, appender))
    assert contents(tmp_path / "copy") == contents(tmp_path / "source")


@pytest.mark.parametrize("ack", [True, False])
def test_java_submits_to_a_source(java: JavaPeer, tmp_path: Path, *, ack: bool) -> None:
    clock = quire.ManualClock(START_MS)

    async def submitted(queue: quire.vanilla.VanillaQueue) -> list[str]:
        async with Source(queue, accept_submits=True) as source:
            text = "".join(f"{payload.hex()}\n" for payload in numbered(20))
            lines = await asyncio.to_thread(
                java.run_with_input, "submit", text, port=source.address[1], ack=ack
            )
            while queue.entry_count < 20:  # noqa: ASYNC110 - what is on its way has no event
                await asyncio.sleep(0.01)
            return lines[1:]

    with vanilla_queue(tmp_path / "source", clock=clock) as queue:
        indexes = run(submitted(queue))
        assert [*queue.tailer().payloads()] == numbered(20)
        if ack:
            assert [int(it, 16) for it in indexes] == [it.index for it in queue.tailer()]


def test_a_java_source_connects_to_a_sink_that_listens(java: JavaPeer, tmp_path: Path) -> None:
    async def replicated() -> None:
        async with Sink(
            tmp_path / "copy", port=0, listens=True, silence_s=WAIT_S, files=FILES
        ) as sink:
            path: Option = tmp_path / "source"
            where = {"dir": path, "port": sink.address[1], "connect": True, "heartbeat_ms": 100}
            with java.start("source", **where, **JAVA_BLOCKS) as source:
                await asyncio.to_thread(source.expect, "CONNECTING")
                with (
                    vanilla_queue(tmp_path / "source", clock=quire.ManualClock(START_MS)) as queue,
                    queue.appender() as appender,
                ):
                    await sink.stored(appender.write_many(numbered(200)) or 0)

    run(replicated())
    assert contents(tmp_path / "copy") == contents(tmp_path / "source")
    assert len(contents(tmp_path / "copy")) == 200


def test_a_source_connects_to_a_java_sink_that_listens(java: JavaPeer, tmp_path: Path) -> None:
    async def replicated(
        queue: quire.vanilla.VanillaQueue, appender: quire.vanilla.VanillaAppender
    ) -> None:
        port = free_port()
        where: dict[str, Option] = {"dir": tmp_path / "copy", "port": port, "bind": True}
        with java.start("sink", count=1000, **where, **JAVA_BLOCKS) as sink:
            await asyncio.to_thread(sink.expect, "READY")
            async with Source(queue, port=port, connects=True, heartbeat_s=0.1):
                appender.write_many(numbered(50))
                expected = [(it.index, it.data) for it in queue.tailer()]
                assert await read_lines(sink, len(expected)) == expected

    with (
        vanilla_queue(tmp_path / "source", clock=quire.ManualClock(START_MS)) as queue,
        queue.appender() as appender,
    ):
        run(replicated(queue, appender))


def test_messages_submitted_to_a_java_source_without_an_event_loop(
    java: JavaPeer, tmp_path: Path
) -> None:
    source = JavaSource(java, tmp_path / "source")
    with source.process, BlockingRemoteAppender(port=source.port, timeout_s=WAIT_S) as appender:
        appender.write_bytes_unacknowledged(b"unacknowledged")
        indexes = [appender.write_bytes(payload) for payload in numbered(20)]
    found = contents(tmp_path / "source")
    assert found[1:] == [*zip(indexes, numbered(20), strict=True)]
    assert found[0][1] == b"unacknowledged"
