"""Recorders in this process, by real sockets and pipes."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Literal

import pytest

import quire
from any_format import open_vanilla
from event_loops import until
from queues import payloads
from quire.errors import ClosedError, MalformedInputError
from quire.recording import Counts, StreamRecorder, TcpRecorder, UdpRecorder


def take_descriptors(taken: ExitStack) -> None:
    """Leave this process without a descriptor, until they are given back."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(it.name) for it in Path("/proc/self/fd").iterdir())
    taken.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
    with suppress(OSError):
        while True:
            taken.callback(os.close, os.dup(0))


def client(recorder: TcpRecorder) -> socket.socket:
    return socket.create_connection(recorder.address)


async def ended(connection: socket.socket) -> None:
    """The recorder has read what was sent, and closed the connection."""
    connection.settimeout(0)
    loop = asyncio.get_running_loop()
    with suppress(ConnectionError):  # it had not read everything
        assert await loop.sock_recv(connection, 1) == b""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The ends of a pipe: the one to read, and the one to write, which a test may close."""
    reader, writer = os.pipe()
    with ExitStack() as stack:
        stack.callback(os.close, reader)
        yield reader, writer


def test_lines_of_several_clients_keep_their_order(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    count, lines = 5, 200

    async def scenario() -> None:
        async with TcpRecorder(appender, append_unfinished=True) as recorder:
            with ExitStack() as stack:
                clients = [stack.enter_context(client(recorder)) for _ in range(count)]
                for line in range(lines):
                    for number, each in enumerate(clients):
                        each.sendall(b"%d:%d\r\n" % (number, line))
                    await asyncio.sleep(0)
                for each in clients:
                    each.sendall(b"last")  # without a line end
                    each.shutdown(socket.SHUT_WR)
                for each in clients:
                    await ended(each)
            assert recorder.counts == Counts(count * (lines + 1), count * (lines + 1))

    asyncio.run(scenario())
    found = payloads(queue)
    for number in range(count):
        own = [it for it in found if it.startswith(b"%d:" % number)]
        assert own == [b"%d:%d" % (number, line) for line in range(lines)]
    assert found.count(b"last") == count


def test_messages_with_lengths_may_arrive_byte_by_byte(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    messages = [b"a", b"\n\r\n", bytes(range(256)), b"z" * 700]
    stream = b"".join(len(it).to_bytes(4, "big") + it for it in messages)

    async def scenario() -> None:
        async with TcpRecorder(appender, framing="length") as recorder:
            with client(recorder) as slow, client(recorder) as fast:
                fast.sendall(stream)
                for byte in stream:
                    slow.sendall(bytes([byte]))
                    await asyncio.sleep(0)
                for each in (fast, slow):
                    each.shutdown(socket.SHUT_WR)
                    await ended(each)

    asyncio.run(scenario())
    assert sorted(payloads(queue)) == sorted(messages * 2)


@pytest.mark.parametrize(
    ("sent", "length"),
    [
        (b"good\n" + b"x" * 200, 200),
        (b"good\n" + b"x" * 101 + b"\nmore\n", 101),
        (b"\0\0\0\4good\xff\xff\xff\xff", 0xFFFF_FFFF),
    ],
)
def test_a_hostile_client_costs_its_connection_only(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    caplog: pytest.LogCaptureFixture,
    sent: bytes,
    length: int,
) -> None:
    framing: Literal["lines", "length"] = "lines" if sent[0] else "length"
    message = b"fine\n" if framing == "lines" else b"\0\0\0\4fine"

    async def scenario() -> None:
        async with TcpRecorder(appender, framing=framing, max_bytes=100) as recorder:
            with client(recorder) as honest, client(recorder) as hostile:
                honest.sendall(message)
                await until(lambda: recorder.counts.written == 1)
                hostile.sendall(sent)
                await ended(hostile)
                honest.sendall(message)
                await until(lambda: recorder.counts.written == 3)
            assert recorder.counts.refused == 1

    asyncio.run(scenario())
    assert payloads(queue) == [b"fine", b"good", b"fine"]
    assert f"too long: length={length} limit=100" in caplog.text
    assert "peer=127.0.0.1:" in caplog.text


def test_a_message_that_its_client_does_not_finish_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender, framing="length") as recorder:
            with client(recorder) as each:
                each.sendall(b"\0\0\0\3one\0\0\0\3tw")
                each.shutdown(socket.SHUT_WR)
                await ended(each)
            assert recorder.counts == Counts(received=2, written=1, refused=1)

    asyncio.run(scenario())
    assert payloads(queue) == [b"one"]


def test_a_silent_client_is_disconnected(
    appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender, idle_timeout_s=0.01) as recorder:
            with client(recorder) as silent:
                await ended(silent)
            assert recorder.counts == Counts()

    asyncio.run(scenario())
    assert "silent for too long peer=" in caplog.text


def test_one_client_too_many_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender, max_clients=1) as recorder:
            with client(recorder) as first:
                first.sendall(b"one\n")
                await until(lambda: recorder.counts.written == 1)
                with client(recorder) as second:
                    await ended(second)
                first.sendall(b"two\n")
                await until(lambda: recorder.counts.written == 2)

    asyncio.run(scenario())
    assert payloads(queue) == [b"one", b"two"]
    assert "too many: clients=1" in caplog.text


def test_what_cannot_be_appended_ends_the_recording_with_its_error(
    appender: quire.JournalAppender,
) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender) as recorder:
            with client(recorder) as each:
                appender.close()
                each.sendall(b"one\n")
                await recorder.run()

    with pytest.raises(ClosedError):
        asyncio.run(scenario())


def test_a_message_that_the_queue_cannot_hold_is_refused(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(appender: quire.vanilla.VanillaAppender) -> None:
        async with TcpRecorder(appender) as recorder:
            with client(recorder) as honest, client(recorder) as hostile:
                for length in (100, 70_000, 80_000, 5):
                    hostile.sendall(b"x" * length + b"\n")
                await until(lambda: recorder.counts.received == 4)
                honest.sendall(b"fine\n")
                await until(lambda: recorder.counts.written == 3)
            assert recorder.counts == Counts(received=5, written=3, refused=2)

    with open_vanilla(path, data_block_bytes=2**16) as queue:
        asyncio.run(scenario(queue.appender()))
        with queue.tailer() as tailer:
            assert [it.data for it in tailer] == [b"x" * 100, b"x" * 5, b"fine"]
    assert [it for it in caplog.messages if "message too large: length=70000" in it]


def test_a_system_without_descriptors_ends_no_recording(
    appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender) as recorder:
            with client(recorder) as first, ExitStack() as others, ExitStack() as taken:
                first.sendall(b"one\n")
                await until(lambda: recorder.counts.written == 1)
                waiting = [others.enter_context(socket.socket()) for _ in range(2)]
                take_descriptors(taken)
                for each in waiting:
                    each.connect(recorder.address)
                await until(lambda: "cannot accept a client" in caplog.text)
                taken.close()
                first.sendall(b"two\n")
                waiting[1].sendall(b"three\n")
                await until(lambda: recorder.counts.written == 3)

    asyncio.run(scenario())


def test_datagrams_keep_their_bytes_and_order(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    sent = [b"%d\n\r\0" % number for number in range(100)] + [b"x" * 1400]

    async def scenario() -> None:
        async with UdpRecorder(appender, max_bytes=1400) as recorder:
            with socket.socket(type=socket.SOCK_DGRAM) as sender:
                for payload in [*sent, b"", b"x" * 1401]:
                    sender.sendto(payload, recorder.address)
                    await asyncio.sleep(0)
                await until(lambda: recorder.counts.received == len(sent) + 2)
            assert recorder.counts == Counts(len(sent) + 2, len(sent), 2, dropped=0)

    asyncio.run(scenario())
    assert payloads(queue) == sent


def test_dropped_datagrams_are_counted(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def scenario() -> None:
        async with UdpRecorder(appender, receive_buffer_bytes=4096) as recorder:
            counts, sent = recorder.counts, 0
            with socket.socket(type=socket.SOCK_DGRAM) as sender:
                while not counts.dropped:
                    for _ in range(100):  # nothing is read meanwhile: the loop does not run
                        sender.sendto(b"x" * 100, recorder.address)
                    sent += 100
                    await until(lambda: counts.received + (counts.dropped or 0) >= sent)  # noqa: B023
            assert counts.received + counts.dropped == sent

    asyncio.run(scenario())
    assert set(payloads(queue)) == {b"x" * 100}


def test_a_recorder_that_is_closed_appends_what_was_received(
    queue: quire.JournalQueue, appender: quire.JournalAppender, pipe: tuple[int, int]
) -> None:
    reader, writer = pipe

    async def scenario() -> None:
        async with StreamRecorder(appender, reader) as recorder:
            os.write(writer, b"one\ntwo\nunfin")
        assert recorder.counts == Counts(received=3, written=2, refused=1)

    with closing(os.fdopen(writer, "wb")):
        asyncio.run(scenario())
    assert payloads(queue) == [b"one", b"two"]


def test_a_file_is_recorded_until_a_line_that_is_too_long(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\n\n" + b"x" * 101 + b"\ntwo\n")

    async def scenario(descriptor: int) -> None:
        async with StreamRecorder(appender, descriptor, max_bytes=100) as recorder:
            await recorder.run()

    with file.open("rb") as opened, pytest.raises(MalformedInputError, match="length=101") as error:
        asyncio.run(scenario(opened.fileno()))
    assert "received=3 written=1 refused=2" in str(error.value)
    assert payloads(queue) == [b"one"]


def test_a_task_that_is_cancelled_ends_the_recording(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def record(started: asyncio.Future[TcpRecorder]) -> None:
        async with TcpRecorder(appender) as recorder:
            started.set_result(recorder)
            await recorder.run()

    async def scenario() -> None:
        started = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(record(started))
        recorder = await started
        with client(recorder) as each:
            each.sendall(b"one\n")
            await until(lambda: recorder.counts.written == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await ended(each)

    asyncio.run(scenario())
    assert payloads(queue) == [b"one"]
