"""Replication with peers that send nonsense, too much, or nothing."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from quire.errors import LockHeldError
from quire.vanilla import FileOptions
from quire.vanilla.replication import RemoteAppender, Sink, Source
from replication_wire import (
    CAPTURED_CYCLE,
    CAPTURED_MS,
    FILES,
    FIRST_CAPTURED,
    HEARTBEAT,
    SMALL,
    WAIT_S,
    contents,
    echo,
    is_closed,
    listening,
    message,
    run,
    subscribe,
)

FIRST = message(FIRST_CAPTURED, b"one")
HOURS_CYCLE = 497_000  # 2026, in hours


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[quire.vanilla.VanillaQueue]:
    clock = quire.ManualClock(CAPTURED_MS)
    with open_vanilla(tmp_path / "source", clock=clock, **SMALL) as queue:
        queue.appender().write_many([b"one", b"two"])
        yield queue


def sink_of(path: Path, port: int, **options: Any) -> Sink:  # noqa: ANN401 - any option
    given: dict[str, Any] = {"files": FILES, "reconnect_s": 0, "silence_s": WAIT_S} | options
    return Sink(path, port=port, **given)


def failure_of_sink(path: Path, frames: bytes, **options: Any) -> quire.errors.ReplicationError:  # noqa: ANN401
    """Serve these frames to a sink, whatever it asks; what ends it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(16)
        writer.write(frames)
        await is_closed(reader)

    async def failed() -> quire.errors.ReplicationError:
        async with listening(serve) as port:
            sink = sink_of(path, port, **options)
            with pytest.raises(quire.errors.ReplicationError) as raised:
                async with sink:
                    await sink.run_forever()
            return raised.value

    return run(failed())


def copied(path: Path) -> list[tuple[int, bytes]]:
    with quire.open(path, format="vanilla") as copy:
        return contents(copy)


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        (struct.pack("<iq", -126, 7), "expected=the answer to a subscription"),
        (FIRST, "expected=the answer to a subscription"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a message that is too long: length=1347703880"),
        (struct.pack("<iq", -131, 0), "an unknown mark: found=-131"),
        (echo(-1) + echo(-1), "expected=messages"),
        (echo(-1) + struct.pack("<iq", -127, 0), "found=PADDED"),
        (echo(-1) + message(FIRST_CAPTURED + 1, b"two"), "before the one that precedes it"),
        (echo(-1) + message(-5, b"?"), "cycles of the copy differ from those of the source"),
        (
            echo(-1) + message(2**63 - 1, b"?"),
            "cycles of the copy differ from those of the source",
        ),
    ],
)
def test_a_source_that_sends_nonsense_ends_the_sink(
    tmp_path: Path, frames: bytes, text: str
) -> None:
    assert text in str(failure_of_sink(tmp_path / "copy", frames))
    assert copied(tmp_path / "copy") == []


@pytest.mark.parametrize(
    "nonsense",
    [
        struct.pack("<iq", -131, 0),
        struct.pack("<iq", 2**31 - 1, FIRST_CAPTURED + 1),
        message(FIRST_CAPTURED + 2, b"three"),
    ],
)
def test_messages_before_nonsense_are_kept(tmp_path: Path, nonsense: bytes) -> None:
    failure_of_sink(tmp_path / "copy", echo(-1) + FIRST + nonsense)
    assert copied(tmp_path / "copy") == [(FIRST_CAPTURED, b"one")]


@pytest.mark.parametrize("heartbeats", [b"", HEARTBEAT])
def test_a_source_that_sends_nothing_is_given_up(tmp_path: Path, heartbeats: bytes) -> None:
    error = failure_of_sink(tmp_path / "copy", heartbeats, attempts=2, silence_s=0.05)
    assert isinstance(error, quire.errors.PeerSilentError)
    assert "timeout_s=0.05" in str(error)


def test_a_source_that_is_not_there_or_hangs_up_is_given_up(tmp_path: Path) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def failed() -> None:
        async with listening(hang_up) as port:
            await fails(port, "the peer closed the connection|the connection failed")
        await fails(port, "the connection failed")

    async def fails(port: int, text: str) -> None:
        async with sink_of(tmp_path / "copy", port, attempts=3) as sink:
            with pytest.raises(quire.errors.PeerLostError, match=text):
                await sink.in_sync()
            with pytest.raises(quire.errors.PeerLostError):
                await sink.run_forever()
            await sink.close()

    with pytest.raises(quire.errors.PeerLostError):
        run(failed())


def test_a_copy_of_something_else_is_left_alone(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    clock = quire.ManualClock(CAPTURED_MS)
    for name, payloads in (("longer", [b"one", b"two", b"three"]), ("other", [b"one", b"twice"])):
        with open_vanilla(tmp_path / name, clock=clock, **SMALL) as copy:
            copy.appender().write_many(payloads)

    async def fails(name: str, text: str) -> None:
        async with Source(queue, heartbeat_s=0.01) as source:
            before = copied(tmp_path / name)
            sink = sink_of(tmp_path / name, source.address[1])
            with pytest.raises(quire.errors.ReplicationError, match=text):
                async with sink:
                    await sink.run_forever()
            assert copied(tmp_path / name) == before

    run(fails("longer", "does not have the message that the copy ends with"))
    run(fails("other", "the copy has a different message from the source"))


def test_another_writer_of_a_copy_is_noticed(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    clock = quire.ManualClock(CAPTURED_MS)

    async def fails() -> None:
        async with Source(queue, heartbeat_s=0.01) as source:
            sink = sink_of(tmp_path / "copy", source.address[1])
            with pytest.raises(quire.errors.ReplicationError, match="has a different message"):  # noqa: PT012
                async with sink:
                    await sink.stored(FIRST_CAPTURED + 1)
                    with quire.open(tmp_path / "copy", format="vanilla", clock=clock) as copy:
                        copy.appender().write_bytes(b"mine")
                    queue.appender().write_bytes(b"three")
                    await sink.run_forever()

    run(fails())
    assert copied(tmp_path / "copy")[2:] == [(FIRST_CAPTURED + 2, b"mine")]


def test_a_copy_has_one_sink(tmp_path: Path) -> None:
    async def refused() -> None:
        async with sink_of(tmp_path / "copy", 1):
            with pytest.raises(LockHeldError):
                sink_of(tmp_path / "copy", 1)
        await sink_of(tmp_path / "copy", 1).close()

    run(refused())


def test_waiting_for_a_sink_ends_when_it_is_closed(tmp_path: Path) -> None:
    async def closed() -> None:
        sink = sink_of(tmp_path / "copy", 1)
        with pytest.raises(RuntimeError, match="not running"):
            await sink.in_sync()
        async with sink:
            waiting = [
                asyncio.create_task(it)
                for it in (sink.in_sync(), sink.stored(FIRST_CAPTURED), sink.run_forever())
            ]
            await sink.close()
            ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in ended] == [quire.errors.ClosedError] * 3

    run(closed())


@pytest.mark.parametrize(
    ("cycle", "options"),
    [(HOURS_CYCLE, {}), (CAPTURED_CYCLE, {"roll_cycle": "HOURS"})],
)
def test_a_copy_with_other_cycles_is_refused(
    tmp_path: Path, cycle: int, options: dict[str, Any]
) -> None:
    frames = echo(-1) + message(cycle << 40, b"one")
    error = failure_of_sink(tmp_path / "copy", frames, **options)
    assert "cycles of the copy differ from those of the source" in str(error)
    assert copied(tmp_path / "copy") == []


def test_cycle_settings_other_than_those_of_the_copy_are_refused(tmp_path: Path) -> None:
    with open_vanilla(tmp_path / "copy", roll_cycle="HOURS", **SMALL) as copy:
        copy.appender().write_bytes(b"one")
    with pytest.raises(quire.errors.RollCycleMismatchError):
        sink_of(tmp_path / "copy", 1, roll_cycle="MINUTES")
    with pytest.raises(quire.errors.UnsupportedError, match="not an option of a copy: consumption"):
        sink_of(tmp_path / "copy", 1, consumption="queue")


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "an unknown action: found="),
        (struct.pack("<qi", 30, 5) + b"\xac\xed\x00\x05t", "asked for a mapping"),
        (struct.pack("<qq", 20, -1), "of invalid length: found=-1"),
        (struct.pack("<qq", 20, 1 << 40), "of invalid length: found=1099511627776"),
        (struct.pack("<qq", 21, 2000) + bytes(2000), "of invalid length: found=2000"),
        (subscribe(-1) + struct.pack("<q", 31), "an unknown action: found=31"),
    ],
)
def test_a_sink_that_sends_nonsense_is_disconnected_and_others_are_not(
    queue: quire.vanilla.VanillaQueue,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    sent: bytes,
    text: str,
) -> None:
    async def disconnected() -> None:
        async with (
            Source(queue, accept_submits=True, max_submit_bytes=1000, timeout_s=WAIT_S) as source,
            sink_of(tmp_path / "copy", source.address[1]) as sink,
        ):
            await sink.stored(FIRST_CAPTURED + 1)
            reader, writer = await asyncio.open_connection(*source.address)
            writer.write(sent)
            assert await is_closed(reader)
            writer.close()
            await sink.stored(queue.appender().write_bytes(b"three"))

    run(disconnected())
    assert text in caplog.text
    assert [payload for _, payload in contents(queue)] == [b"one", b"two", b"three"]
    assert "connecting again" not in caplog.text


@pytest.mark.parametrize(
    "sent", [b"", b"\x01", subscribe(-1)[:9], struct.pack("<qq", 20, 9) + b"x"]
)
def test_a_sink_that_stops_in_a_request_is_disconnected(
    queue: quire.vanilla.VanillaQueue, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async def disconnected() -> None:
        async with Source(queue, timeout_s=0.05, accept_submits=True) as source:
            reader, writer = await asyncio.open_connection(*source.address)
            writer.write(sent)
            assert await is_closed(reader)
            writer.close()

    run(disconnected())
    assert "sent nothing, or no complete request, for too long" in caplog.text
    assert len(contents(queue)) == 2


def test_a_sink_that_takes_nothing_is_disconnected_and_others_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, count = quire.ManualClock(CAPTURED_MS), 300
    large: dict[str, Any] = SMALL | {"data_block_bytes": 1 << 20}

    async def disconnected(queue: quire.vanilla.VanillaQueue) -> None:
        last = queue.appender().write_many([bytes(60_000)] * count) or 0
        async with Source(queue, timeout_s=0.5) as source:
            reader, writer = await asyncio.open_connection(*source.address, limit=1000)
            writer.write(subscribe(-1))
            # Nothing is read from here on.
            files = FileOptions(**large)
            async with sink_of(tmp_path / "copy", source.address[1], files=files) as sink:
                await sink.stored(last)
                while stuck := [it for it in source.sinks if it.peer.endswith(local_port(writer))]:
                    assert (stuck[0].sent_index or 0) < last  # the rest is not in memory
                    await asyncio.sleep(0.01)
                assert await is_closed(reader)
            writer.close()

    def local_port(writer: asyncio.StreamWriter) -> str:
        return f":{writer.get_extra_info('sockname')[1]}"

    with open_vanilla(tmp_path / "source", clock=clock, **large) as queue:
        run(disconnected(queue))
    assert "read nothing for too long" in caplog.text
    assert len(copied(tmp_path / "copy")) == count


def test_more_sinks_than_allowed_are_refused(
    queue: quire.vanilla.VanillaQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused() -> None:
        async with Source(queue, max_sinks=1) as source:
            reader, writer = await asyncio.open_connection(*source.address)
            writer.write(subscribe(-1))
            await reader.readexactly(12)
            other, other_writer = await asyncio.open_connection(*source.address)
            assert await is_closed(other)
            writer.close()
            other_writer.close()

    run(refused())
    assert "max_sinks=1" in caplog.text


def test_submitted_messages_are_refused_unless_they_were_asked_for(
    queue: quire.vanilla.VanillaQueue,
) -> None:
    async def refused() -> None:
        async with (
            Source(queue) as source,
            RemoteAppender(port=source.address[1], timeout_s=WAIT_S) as appender,
        ):
            for _ in range(2):
                with pytest.raises(quire.errors.UnsupportedError, match="does not accept messages"):
                    await appender.write_bytes(bytes(100_000))
            reader, writer = await asyncio.open_connection(*source.address)
            writer.write(struct.pack("<qq", 20, 3) + b"one")
            assert await reader.readexactly(12) == struct.pack("<iq", -130, -4)
            writer.write(struct.pack("<qq", 21, 3) + b"one")
            assert await is_closed(reader)
            writer.close()

    run(refused())
    assert len(contents(queue)) == 2


@pytest.mark.parametrize("answer", [b"", echo(1), FIRST, struct.pack("<iq", -129, 1) * 2])
def test_an_appender_whose_source_answers_nonsense_is_closed(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(19)
        writer.write(answer)
        writer.close()

    async def failed() -> None:
        async with (
            listening(serve) as port,
            RemoteAppender(port=port, timeout_s=WAIT_S) as appender,
        ):
            with pytest.raises(quire.errors.ReplicationError):
                await appender.write_bytes(b"one")
            with pytest.raises(quire.errors.ClosedError):
                await appender.write_bytes(b"one")

    run(failed())


def test_a_read_only_queue_is_replicated_and_takes_no_messages(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path
) -> None:
    async def replicated(reader: quire.vanilla.VanillaQueue) -> None:
        async with (
            Source(reader) as source,
            sink_of(tmp_path / "copy", source.address[1]) as sink,
        ):
            await sink.stored(FIRST_CAPTURED + 1)

    with quire.open(queue.path, format="vanilla", read_only=True) as reader:
        run(replicated(reader))
        with pytest.raises(quire.errors.ReadOnlyError):
            Source(reader, accept_submits=True)
    with pytest.raises(TypeError, match="invalid queue: expected a VanillaQueue, found str"):
        Source("queue")  # type: ignore[arg-type]
    assert copied(tmp_path / "copy") == contents(queue)


def test_a_message_that_the_copy_has_no_room_for_ends_the_sink(tmp_path: Path) -> None:
    clock = quire.ManualClock(CAPTURED_MS)

    async def replicated(queue: quire.vanilla.VanillaQueue) -> None:
        queue.appender().write_many([b"one", bytes(9000)])
        async with Source(queue) as source:
            sink = sink_of(tmp_path / "copy", source.address[1])
            with pytest.raises(quire.errors.MessageTooLargeError, match="length=9000 limit=8188"):
                async with sink:
                    await sink.run_forever()

    with quire.open(tmp_path / "source", format="vanilla", clock=clock) as queue:
        run(replicated(queue))
    assert copied(tmp_path / "copy") == [(FIRST_CAPTURED, b"one")]


def test_damage_of_the_source_is_reported_and_the_copy_keeps_what_is_before(
    queue: quire.vanilla.VanillaQueue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [data] = Path(queue.directory_for_cycle(CAPTURED_CYCLE)).glob("data-*")
    with data.open("r+b") as file:
        file.seek(8)
        file.write(b"\xff\xff\xff\x0f")

    async def replicated() -> None:
        async with (
            Source(queue) as source,
            sink_of(tmp_path / "copy", source.address[1]) as sink,
        ):
            await sink.stored(FIRST_CAPTURED)
            while "an entry names no record" not in caplog.text:  # noqa: ASYNC110 - logged later
                await asyncio.sleep(0.01)

    run(replicated())
    assert copied(tmp_path / "copy") == [(FIRST_CAPTURED, b"one")]
