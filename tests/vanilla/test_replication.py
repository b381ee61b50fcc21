"""TCP replication against what Java's sides sent each other, and between Quire's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from any_format import open_vanilla
from quire.vanilla.replication import RemoteAppender, Sink, Source
from replication_wire import (
    CAPTURED_CYCLE,
    CAPTURED_MS,
    DAY_MS,
    FILES,
    FIRST_CAPTURED,
    HEARTBEAT,
    SMALL,
    WAIT_S,
    Cutter,
    Exchange,
    captured,
    captured_payloads,
    contents,
    echo,
    listening,
    message,
    run,
    subscribe,
)


@pytest.fixture
def clock() -> quire.ManualClock:
    return quire.ManualClock(CAPTURED_MS)


@pytest.fixture
def queue(tmp_path: Path, clock: quire.ManualClock) -> Iterator[quire.vanilla.VanillaQueue]:
    with open_vanilla(tmp_path / "source", clock=clock, **SMALL) as queue:
        yield queue


def remote(port: int) -> RemoteAppender:
    return RemoteAppender(port=port, timeout_s=WAIT_S)


async def exchanged(port: int, exchange: Exchange) -> bytes:
    """Send what Java's sink sent; the answer, as long as that of Java's source was."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(exchange.requests)
    found = await reader.readexactly(len(exchange.frames))
    writer.close()
    return found


def test_a_source_sends_what_javas_source_sent(queue: quire.vanilla.VanillaQueue) -> None:
    fresh, resumed, submitted, all_again = captured()
    # Java's source ends with half a frame.
    all_again.frames = all_again.frames[:-12]

    async def replayed() -> None:
        async with Source(queue, heartbeat_s=0.05, accept_submits=True) as source:
            for exchange in (fresh, resumed, submitted, all_again):
                assert await exchanged(source.address[1], exchange) == exchange.frames

    queue.appender().write_many(captured_payloads()[:6])
    run(replayed())
    assert [payload for _, payload in contents(queue)] == captured_payloads()


def test_a_sink_sends_what_javas_sink_sent_and_keeps_what_it_got(tmp_path: Path) -> None:
    fresh, resumed, _, all_again = captured()

    async def replayed(path: Path, exchanges: list[Exchange], last: int) -> None:
        left, requests = iter(exchanges), asyncio.Queue[bytes]()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if (exchange := next(left, None)) is None:
                return  # says nothing
            requests.put_nowait(await reader.readexactly(len(exchange.requests)))
            writer.write(exchange.frames)
            writer.close()

        async with (
            listening(serve) as port,
            Sink(path, port=port, reconnect_s=0, silence_s=WAIT_S, files=FILES) as sink,
        ):
            for exchange in exchanges:
                assert await requests.get() == exchange.requests
            await sink.stored(last)

    run(replayed(tmp_path / "one", [fresh, resumed], FIRST_CAPTURED + 5))
    run(replayed(tmp_path / "two", [all_again], FIRST_CAPTURED + 7))
    for name, count in (("one", 6), ("two", 8)):
        with quire.open(tmp_path / name, format="vanilla") as copy:
            assert contents(copy) == [
                (FIRST_CAPTURED + place, it) for place, it in enumerate(captured_payloads()[:count])
            ]


def test_a_remote_appender_sends_what_javas_sent() -> None:
    submitted = captured()[2]
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(2):
            received.extend(await reader.readexactly(29))
            writer.write(submitted.frames[number * 12 : number * 12 + 12])

    async def appended() -> list[int]:
        async with listening(serve) as port, remote(port) as appender:
            return [await appender.write_bytes(it) for it in captured_payloads()[6:]]

    assert run(appended()) == [FIRST_CAPTURED + 6, FIRST_CAPTURED + 7]
    assert bytes(received) == submitted.requests


def test_messages_submitted_with_and_without_acknowledgement(
    queue: quire.vanilla.VanillaQueue,
) -> None:
    async def appended() -> int:
        async with Source(queue, accept_submits=True) as source:
            async with remote(source.address[1]) as appender:
                await appender.write_bytes_unacknowledged(b"one")
                index = await appender.write_bytes(b"")
            async with remote(source.address[1]) as appender:
                await asyncio.gather(*(appender.write_bytes(b"%d" % it) for it in range(20)))
            with pytest.raises(quire.errors.ClosedError):
                await appender.write_bytes(b"late")
        return index

    assert run(appended()) == FIRST_CAPTURED + 1
    payloads = [payload for _, payload in contents(queue)]
    assert payloads == [b"one", b"", *(b"%d" % it for it in range(20))]
    [data] = Path(queue.directory_for_cycle(CAPTURED_CYCLE)).glob("data-*")
    assert data.name.endswith("-0")


def test_ten_sinks_at_once_while_messages_come(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    async def replicated() -> None:
        async with Source(queue) as source, asyncio.TaskGroup() as tasks:
            port = source.address[1]
            for number in range(10):
                tasks.create_task(kept(tmp_path / f"copy{number}", port))
            with queue.appender() as appender:
                for number in range(2000):
                    appender.write_bytes(bytes([number % 256]) * (number % 60))
                    if number % 50 == 0:
                        await asyncio.sleep(0)

    async def kept(path: Path, port: int) -> None:
        async with Sink(path, port=port, acknowledge=True, files=FILES) as sink:
            await sink.stored(FIRST_CAPTURED + 1999)

    run(replicated())
    expected = contents(queue)
    assert len(expected) == 2000
    for number in range(10):
        with quire.open(tmp_path / f"copy{number}", format="vanilla") as copy:
            assert contents(copy) == expected


@pytest.mark.slow
def test_a_connection_cut_at_any_byte_leaves_no_gap_and_no_repeat(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    payloads = [b"one", b"", b"three, which is longer", b"4"]
    queue.appender().write_many(payloads)
    expected = [(FIRST_CAPTURED + place, payload) for place, payload in enumerate(payloads)]
    sent = echo(-1) + b"".join(message(*it) for it in expected)

    async def cut(source: Source, name: str, frames: int, requests: int) -> None:
        cutter = Cutter(source.address[1], frames=[frames], requests=[requests])
        path, last = tmp_path / name, expected[-1][0]
        async with (
            listening(cutter.serve) as port,
            Sink(path, port=port, reconnect_s=0, acknowledge=True, files=FILES) as sink,
        ):
            await sink.stored(last)
            await source.stored(last)
            await cutter.reconnected.wait()  # the last cuts are after the last message
            await sink.in_sync()
        with quire.open(path, format="vanilla") as copy:
            assert contents(copy) == expected

    async def cut_everywhere() -> None:
        async with Source(queue, heartbeat_s=0.01) as source:
            for count in range(len(sent) + 1):
                await cut(source, f"frames{count}", count, 1 << 40)
            for count in range(2 * len(subscribe(0)) + 1):
                await cut(source, f"requests{count}", 1 << 40, count)

    run(cut_everywhere())


@pytest.mark.check
def test_every_connection_is_cut_and_the_copy_gets_there(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    queue.appender().write_many([bytes([it]) * (it % 40) for it in range(200)])

    async def replicated() -> None:
        async with Source(queue) as source:
            cuts = [100 + 7 * it % 90 for it in range(1000)]
            cutter = Cutter(source.address[1], frames=cuts, requests=[])
            async with (
                listening(cutter.serve) as port,
                Sink(tmp_path / "copy", port=port, reconnect_s=0, files=FILES) as sink,
            ):
                await sink.stored(FIRST_CAPTURED + 199)
            assert cutter.connections > 20

    run(replicated())
    with quire.open(tmp_path / "copy", format="vanilla") as copy:
        assert contents(copy) == contents(queue)


def test_a_new_cycle_is_an_event_and_not_a_frame(
    queue: quire.vanilla.VanillaQueue, clock: quire.ManualClock, tmp_path: Path
) -> None:
    cycles: list[int] = []

    async def replicated() -> None:
        with queue.appender() as appender:
            async with (
                Source(queue) as source,
                Sink(
                    tmp_path / "copy",
                    port=source.address[1],
                    on_cycle=cycles.append,
                    files=FILES,
                ) as sink,
            ):
                appender.write_bytes(b"one")
                for _ in range(2):
                    clock.advance(DAY_MS)
                    appender.write_many([b"two", b"three"])
                await sink.stored((CAPTURED_CYCLE + 2 << 40) + 1)

    run(replicated())
    assert cycles == [CAPTURED_CYCLE, CAPTURED_CYCLE + 1, CAPTURED_CYCLE + 2]
    with quire.open(tmp_path / "copy", format="vanilla") as copy:
        assert contents(copy) == contents(queue)
        assert copy.cycles == cycles


def test_messages_of_a_slow_writer_are_not_missed_while_a_sink_is_away(
    queue: quire.vanilla.VanillaQueue, clock: quire.ManualClock, tmp_path: Path
) -> None:
    async def keep_up(source: Source) -> None:
        async with Sink(
            tmp_path / "copy", port=source.address[1], acknowledge=True, files=FILES
        ) as sink:
            await sink.in_sync()
            for index, _ in contents(queue):
                await source.stored(index)
                await sink.stored(index)

    async def replicated() -> None:
        async with Source(queue, heartbeat_s=0.01) as source:
            quick, slow = queue.appender(), queue.appender()
            slow.write_bytes(b"early")
            clock.advance(DAY_MS)
            quick.write_many([b"new", b"newer"])
            await keep_up(source)
            clock.advance(-DAY_MS)
            slow.write_bytes(b"late")
            clock.advance(DAY_MS)
            await keep_up(source)

    run(replicated())
    with quire.open(tmp_path / "copy", format="vanilla") as copy:
        assert contents(copy) == contents(queue)
        assert len(contents(copy)) == 4


def test_heartbeats_follow_short_messages_for_javas_sink(queue: quire.vanilla.VanillaQueue) -> None:
    """It does not look at a frame before 20 bytes are there."""
    queue.appender().write_bytes(b"short")

    async def sent() -> bytes:
        async with Source(queue, heartbeat_s=3600) as source:
            reader, writer = await asyncio.open_connection(*source.address)
            writer.write(subscribe(-1))
            found = await reader.readexactly(12 + 17 + 12)
            writer.close()
            return found

    assert run(sent()) == echo(-1) + message(FIRST_CAPTURED, b"short") + HEARTBEAT


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (subscribe(-2), echo(FIRST_CAPTURED + 1) + message(FIRST_CAPTURED + 1, b"2" * 8)),
        (subscribe(FIRST_CAPTURED), echo(FIRST_CAPTURED) + message(FIRST_CAPTURED, b"1" * 8)),
        (subscribe(FIRST_CAPTURED + 9), echo(FIRST_CAPTURED + 9) + HEARTBEAT),
        (subscribe(-7), echo(-7) + HEARTBEAT),
        (b"\x0a" + bytes(7) + FIRST_CAPTURED.to_bytes(8, "little"), echo(FIRST_CAPTURED + 1)),
        (b"\x0a" + bytes(15), HEARTBEAT),
        (b"\x02" + bytes(15) + subscribe(-2)[:8] + b"\xff" * 8, echo(-1)),
    ],
)
def test_answers_of_a_source(
    queue: quire.vanilla.VanillaQueue, asked: bytes, answer: bytes
) -> None:
    queue.appender().write_many([b"1" * 8, b"2" * 8])

    async def answered() -> bytes:
        async with Source(queue, heartbeat_s=0.01) as source:
            reader, writer = await asyncio.open_connection(*source.address)
            writer.write(asked)
            found = await reader.readexactly(len(answer))
            writer.close()
            return found

    assert run(answered()) == answer
