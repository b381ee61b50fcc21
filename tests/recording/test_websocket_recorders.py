"""WebSocket recorders in this process: honest and hostile peers, by real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.typing import Origin

import quire
from event_loops import until
from queues import payloads
from quire.errors import ClosedError, MalformedInputError
from quire.recording import Counts, websocket
from quire.recording.websocket import WebSocketFeedRecorder, WebSocketRecorder

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
NO_MASK = bytes(4)
PATIENT: dict[str, Any] = {"open_timeout": None, "ping_timeout": None, "close_timeout": None}
BINARY, PING, FIN, COMPRESSED = 0x2, 0x9, 0x80, 0x40


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """No result depends on how long a connection takes to end."""
    monkeypatch.setattr(websocket, "CLOSE_S", 600.0)


def client(recorder: WebSocketRecorder, **options: Any) -> connect:  # noqa: ANN401
    host, port = recorder.address
    return connect(f"ws://{host}:{port}/any", proxy=None, **(PATIENT | options))


@asynccontextmanager
async def raw_client(
    recorder: WebSocketRecorder, more: bytes = b""
) -> AsyncGenerator[socket.socket]:
    """A client that is connected, and says and reads whatever a test wants."""
    loop = asyncio.get_running_loop()
    with socket.create_connection(recorder.address) as connection:
        connection.settimeout(0)
        await loop.sock_sendall(connection, HANDSHAKE + more + b"\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += await loop.sock_recv(connection, 1 << 16)
        assert b" 101 " in answer
        assert b"permessage-deflate" not in answer
        yield connection


async def heard(connection: socket.socket) -> bytes:
    """All that the recorder sends until it ends the connection."""
    loop = asyncio.get_running_loop()
    connection.settimeout(0)
    found = b""
    try:
        while chunk := await loop.sock_recv(connection, 1 << 16):
            found += chunk
    except ConnectionError:
        pass
    return found


def frame(payload: bytes, first: int = FIN | BINARY) -> bytes:
    """A frame of less than 126 bytes, as a client sends it."""
    return bytes([first, 0x80 | len(payload)]) + NO_MASK + payload


async def closed_code(connection: ClientConnection) -> int | None:
    await connection.wait_closed()
    return connection.close_code


def test_text_and_binary_messages_of_several_clients_keep_their_order(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def send(recorder: WebSocketRecorder, name: str) -> None:
        async with client(recorder) as connection:
            for number in range(200):
                text = f"{name}:{number}"
                await connection.send(text if number % 2 else text.encode())
            await connection.send(["frag", "", "ments é"])

    async def scenario() -> None:
        async with WebSocketRecorder(appender) as recorder:
            await asyncio.gather(*(send(recorder, name) for name in "abc"))
            await until(lambda: recorder.counts.written == 603)
            assert recorder.counts == Counts(received=603, written=603)

    asyncio.run(scenario())
    found = payloads(queue)
    for name in "abc":
        own = [it for it in found if it.startswith(f"{name}:".encode())]
        assert own == [f"{name}:{number}".encode() for number in range(200)]
    assert found.count("fragments é".encode()) == 3


def test_messages_that_arrive_together_do_not_wait_for_what_follows(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    parts = frame(b"two ", BINARY) + frame(b"", FIN | PING) + frame(b"parts", FIN)
    sent = frame(b"one") + parts + frame(b"three")

    async def scenario() -> None:
        async with WebSocketRecorder(appender) as recorder, raw_client(recorder) as connection:
            connection.sendall(sent + frame(b"unfin", BINARY))
            await until(lambda: recorder.counts.written == 3)
            connection.sendall(frame(b"ished", FIN))
            await until(lambda: recorder.counts.written == 4)

    asyncio.run(scenario())
    assert payloads(queue) == [b"one", b"two parts", b"three", b"unfinished"]


def test_messages_that_arrive_together_with_a_hostile_one_are_appended(
    monkeypatch: pytest.MonkeyPatch, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    monkeypatch.setattr(websocket, "CLOSE_S", 0.01)
    sent = [str(number).encode() for number in range(2000)]
    hostile = frame(b"", BINARY) + frame(b"", 0) * 5000 + frame(b"", FIN)

    async def scenario() -> None:
        async with WebSocketRecorder(appender) as recorder, raw_client(recorder) as connection:
            everything = b"".join(map(frame, sent)) + hostile
            await asyncio.get_running_loop().sock_sendall(connection, everything)
            await until(lambda: recorder.counts.written == 2000)

    asyncio.run(scenario())
    assert payloads(queue) == sent


def test_what_was_sent_before_the_recorder_is_closed_is_appended(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender) as recorder:
            connection = await client(recorder)
            for number in range(100):
                await connection.send(str(number))
        assert await closed_code(connection) == 1001
        assert recorder.counts == Counts(received=100, written=100)

    asyncio.run(scenario())
    assert payloads(queue) == [str(number).encode() for number in range(100)]


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (frame(b"x" * 101), 1009, "a message is too long: limit=100"),
        (bytes([0x82, 0xFF]) + b"\x7f" * 8 + NO_MASK, 1009, "a message is too long: limit=100"),
        (
            frame(b"x" * 60, BINARY) + frame(b"x" * 60, FIN),
            1009,
            "a message is too long: limit=100",
        ),
        (frame(b"x", FIN | COMPRESSED | BINARY), 1002, "reserved bits must be 0"),
        (bytes([FIN | BINARY, 1]) + b"x", 1002, "incorrect masking"),
    ],
    ids=["long", "endless", "long in parts", "compressed", "unmasked"],
)
def test_a_hostile_client_costs_its_connection_only(  # noqa: PLR0913, PLR0917 - fixtures
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    caplog: pytest.LogCaptureFixture,
    sent: bytes,
    code: int,
    reason: str,
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender, max_bytes=100) as recorder:
            async with client(recorder) as honest:
                await honest.send("one")
                deflate = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
                async with raw_client(recorder, deflate) as hostile:
                    hostile.sendall(frame(b"good") + sent)
                    answered = await heard(hostile)
                await until(lambda: recorder.counts.written == 2)
                await honest.send("three")
                await until(lambda: recorder.counts.written == 3)
            assert code.to_bytes(2, "big") in answered
            assert recorder.counts.refused == (code == 1009)

    asyncio.run(scenario())
    assert payloads(queue)[-1] == b"three"
    assert sorted(payloads(queue)) == [b"good", b"one", b"three"]
    assert reason in caplog.text
    assert "peer=127.0.0.1:" in caplog.text


def test_a_client_that_sends_pings_and_reads_nothing_is_disconnected(
    appender: quire.JournalAppender,
) -> None:
    async def scenario() -> None:
        pings = frame(b"x" * 125, FIN | PING) * 500
        async with WebSocketRecorder(appender) as recorder, raw_client(recorder) as hostile:
            with suppress(ConnectionError):
                while True:  # until the answers fill the buffers of the system
                    await asyncio.get_running_loop().sock_sendall(hostile, pings)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (frame(b"x" * 101), "a message is too long: limit=100"),
        (frame(b"", BINARY) + frame(b"", 0) * 5000, "too many fragments"),
    ],
    ids=["long", "empty parts"],
)
def test_a_client_that_failed_and_does_not_close_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
    appender: quire.JournalAppender,
    caplog: pytest.LogCaptureFixture,
    sent: bytes,
    reason: str,
) -> None:
    monkeypatch.setattr(websocket, "CLOSE_S", 0.01)

    async def scenario() -> None:
        async with (
            WebSocketRecorder(appender, max_bytes=100) as recorder,
            raw_client(recorder) as hostile,
        ):
            await asyncio.get_running_loop().sock_sendall(hostile, sent)
            await until(lambda: recorder.counts.refused == 1)  # the connection has ended

    asyncio.run(scenario())
    assert reason in caplog.text


def test_what_is_no_websocket_client_is_refused(appender: quire.JournalAppender) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender) as recorder:
            with socket.create_connection(recorder.address) as other:
                other.sendall(b"one\r\n\r\n")
                assert b"101" not in await heard(other)
            assert recorder.counts == Counts()

    asyncio.run(scenario())


def test_a_page_of_another_origin_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender, origins=["https://example.com"]) as recorder:
            with pytest.raises(InvalidStatus, match="403"):
                await client(recorder, origin=Origin("https://evil.example"))
            async with client(recorder, origin=Origin("https://example.com")) as page:
                await page.send("one")
            await until(lambda: recorder.counts.written == 1)

    asyncio.run(scenario())
    assert payloads(queue) == [b"one"]


def test_a_silent_client_is_disconnected(
    appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender, idle_timeout_s=0.01) as recorder:
            await closed_code(await client(recorder))
            assert recorder.counts == Counts()

    asyncio.run(scenario())
    assert "silent for too long peer=" in caplog.text


def test_one_client_too_many_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender, max_clients=1) as recorder:
            async with client(recorder) as first:
                await first.send("one")
                with pytest.raises((OSError, InvalidHandshake)):
                    await client(recorder)
                await first.send("two")
            await until(lambda: recorder.counts.written == 2)

    asyncio.run(scenario())
    assert payloads(queue) == [b"one", b"two"]
    assert "too many: clients=1" in caplog.text


def test_what_cannot_be_appended_ends_the_recording_with_its_error(
    appender: quire.JournalAppender,
) -> None:
    async def scenario() -> None:
        async with WebSocketRecorder(appender) as recorder, client(recorder) as connection:
            appender.close()
            await connection.send("one")
            await recorder.run()

    with pytest.raises(ClosedError):
        asyncio.run(scenario())


@contextmanager
def answering(*sent: str | bytes, code: int = 1000) -> Generator[Any]:
    """What serves clients messages, and closes their connections with a code."""

    async def handler(connection: ServerConnection) -> None:
        for message in sent:
            await connection.send(message)
        await connection.close(code, "the\x1b[1m end")

    yield serve(handler, "127.0.0.1", 0, **PATIENT)


async def feed_of(server: Any, appender: quire.JournalAppender, **options: Any) -> Counts:  # noqa: ANN401
    async with server as serving:
        port = serving.sockets[0].getsockname()[1]
        url = f"ws://127.0.0.1:{port}/feed?token=secret"
        async with WebSocketFeedRecorder(appender, url, **options) as recorder:
            await recorder.run()
        return recorder.counts


@pytest.mark.parametrize("code", [1000, 1001])
def test_a_server_is_recorded_until_it_closes_the_connection(
    queue: quire.JournalQueue, appender: quire.JournalAppender, code: int
) -> None:
    async def scenario() -> None:
        with answering("one", b"\0\xff", "", "é", code=code) as server:
            assert await feed_of(server, appender) == Counts(received=4, written=3, refused=1)

    asyncio.run(scenario())
    assert payloads(queue) == [b"one", b"\0\xff", "é".encode()]


@pytest.mark.parametrize(
    ("sent", "code", "text"),
    [
        ("two", 1011, r"failed: reason='received 1011 \(internal error\) the\\x1b\[1m end"),
        ("x" * 101, 1000, "a message is too long: limit=100"),
    ],
)
def test_a_server_that_fails_ends_the_recording_with_an_error(
    queue: quire.JournalQueue, appender: quire.JournalAppender, sent: str, code: int, text: str
) -> None:
    async def scenario() -> None:
        with answering("one", sent, code=code) as server:
            await feed_of(server, appender, max_bytes=100)

    with pytest.raises(MalformedInputError, match=text) as error:
        asyncio.run(scenario())
    assert "received=2" in str(error.value)
    assert payloads(queue)[0] == b"one"


def test_a_feed_that_is_closed_appends_what_was_sent(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def scenario() -> None:
        sent = asyncio.Event()

        async def handler(connection: ServerConnection) -> None:
            for number in range(100):
                await connection.send(str(number))
            sent.set()
            await connection.wait_closed()

        async with serve(handler, "127.0.0.1", 0, **PATIENT) as serving:
            port = serving.sockets[0].getsockname()[1]
            async with WebSocketFeedRecorder(appender, f"ws://127.0.0.1:{port}"):
                await sent.wait()

    asyncio.run(scenario())
    assert payloads(queue) == [str(number).encode() for number in range(100)]


def test_a_server_that_is_not_there_is_named_without_secrets(
    appender: quire.JournalAppender,
) -> None:
    async def scenario(port: int) -> None:
        url = f"ws://me:secret@127.0.0.1:{port}/feed?token=secret"
        async with WebSocketFeedRecorder(appender, url):
            pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError, match=rf"cannot connect: url=ws://127.0.0.1:{port}/feed reason="):
        asyncio.run(scenario(port))
