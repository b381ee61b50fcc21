"""Clients that are no recorders' clients: pages in a browser, cut connections, silent ones."""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

import quire
from cli_runs import Cli
from event_loops import until
from queues import payloads
from quire.recording import Counts, TcpRecorder
from quire.recording.framing import Lengths, Lines, OfClient
from quire.recording.websocket import WebSocketRecorder

REQUEST = b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nsell everything\n"


def has_written(recorder: WebSocketRecorder, count: int) -> bool:
    return recorder.counts.written == count


async def sent(recorder: TcpRecorder, data: bytes, *, end: bool = True) -> bytes:
    """Send data, end the sending side, and return what comes until the recorder closes."""
    reader, writer = await asyncio.open_connection(*recorder.address)
    writer.write(data)
    if end:
        writer.write_eof()
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("request_line", [REQUEST, b"GET /a?b HTTP/1.0\n\n", b"PRI * HTTP/2.0\r\n"])
def test_a_page_in_a_browser_appends_nothing(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    request_line: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender) as recorder:
            assert await sent(recorder, request_line, end=False) == b""
            assert await sent(recorder, b"good\nGET / HTTP/1.1\n") == b""
            assert recorder.counts.written == 2

    asyncio.run(scenario())
    assert payloads(queue) == [b"good", b"GET / HTTP/1.1"]
    assert "disconnected a client: the client sent an HTTP request" in caplog.text


def test_a_request_is_recognised_in_any_pieces() -> None:
    for size in range(1, len(REQUEST)):
        framing = OfClient(Lines(1000, needs_end=True))
        pieces = [REQUEST[at : at + size] for at in range(0, len(REQUEST), size)]
        for piece in pieces:
            assert framing.feed(piece) == []
            if framing.error is not None:
                break
        assert "HTTP" in str(framing.error), size


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_a_request_is_no_length(size: int) -> None:
    framing = OfClient(Lengths(2**31 - 1))
    assert framing.feed(REQUEST[:size]) == []
    assert framing.feed(REQUEST[size:]) == []
    assert "HTTP" in str(framing.error)
    assert OfClient(Lengths(2**31 - 1)).feed(b"\0\0\0\1GPOST") == [b"G"]


def test_a_line_that_may_be_cut_is_not_appended(
    queue: quire.JournalQueue, appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(data: bytes, *, append_unfinished: bool) -> Counts:
        async with TcpRecorder(appender, append_unfinished=append_unfinished) as recorder:
            await sent(recorder, data)
            return recorder.counts

    counts = asyncio.run(scenario(b"whole\nbuy 100", append_unfinished=False))
    assert (counts.received, counts.written, counts.refused) == (2, 1, 1)
    assert "the stream ends within a line, which may be cut off: bytes=7" in caplog.text
    asyncio.run(scenario(b"asked for", append_unfinished=True))
    assert payloads(queue) == [b"whole", b"asked for"]


def test_the_option_belongs_to_tcp(cli: Cli, queue: quire.JournalQueue) -> None:
    ran = cli("record", queue.path, "--stdin", "--append-unfinished")
    assert ran.code == 2
    assert "--append-unfinished does not go with --stdin" in ran.err


def test_silent_clients_do_not_shut_a_port(
    queue: quire.JournalQueue, appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender, max_clients=3) as recorder:
            busy = await asyncio.open_connection(*recorder.address)
            busy[1].write(b"first\n")
            await until(lambda: recorder.counts.written == 1)
            silent = [await asyncio.open_connection(*recorder.address) for _ in range(2)]
            silent[1][1].write(b"no whole line")
            for number in range(3):
                await sent(recorder, b"%d\n" % number)
            assert await silent[0][0].read() == b""  # the oldest was disconnected
            busy[1].write(b"last\n")
            await until(lambda: recorder.counts.written == 5)
            for _, writer in (busy, *silent):
                writer.close()

    with caplog.at_level(logging.WARNING, "quire"):
        asyncio.run(scenario())
    assert payloads(queue) == [b"first", b"0", b"1", b"2", b"last"]
    assert caplog.text.count("to make room for another") == 1


def test_clients_that_send_keep_their_places(appender: quire.JournalAppender) -> None:
    async def scenario() -> None:
        async with TcpRecorder(appender, max_clients=1) as recorder:
            reader, writer = await asyncio.open_connection(*recorder.address)
            writer.write(b"a\n")
            await until(lambda: recorder.counts.written == 1)
            assert await sent(recorder, b"refused\n", end=False) == b""
            writer.write(b"b\n")
            await until(lambda: recorder.counts.written == 2)
            writer.close()
            assert await reader.read() == b""

    asyncio.run(scenario())


def test_silent_websocket_clients_do_not_shut_a_port(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender, max_clients=2) as recorder:
            host, port = recorder.address
            url = f"ws://{host}:{port}"
            raw = socket.create_connection(recorder.address)  # not even a handshake
            async with connect(url, proxy=None) as silent:
                for number in range(3):
                    async with connect(url, proxy=None) as client:
                        await client.send(b"%d" % number)
                        await until(partial(has_written, recorder, number + 1))
                await silent.send(b"after all")
                await until(lambda: recorder.counts.written == 4)
            raw.close()

    asyncio.run(scenario())
    assert payloads(queue) == [b"0", b"1", b"2", b"after all"]


def test_a_text_that_is_not_utf_8_closes_a_websocket(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender) as recorder:
            host, port = recorder.address
            async with connect(f"ws://{host}:{port}", proxy=None) as client:
                await client.send("gr\u00fcn")
                await client.send(b"\xff as bytes")
                await client.send(b"\xff as text", text=True)
                with pytest.raises(ConnectionClosedError) as closed:
                    await client.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1007

    asyncio.run(scenario())
    assert payloads(queue) == ["gr\u00fcn".encode(), b"\xff as bytes"]
