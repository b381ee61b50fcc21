"""``quire record`` and ``quire publish`` over WebSocket."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve

import quire
from cli_runs import COMMAND, ENVIRONMENT, Cli, Ran, run
from quire.recording.addresses import parse_url, show_address, show_url
from quire.recording.websocket import WebSocketRecorder

MESSAGES = [b"one", bytes(range(256)), b"\r\n", "é".encode(), b"x" * 60_000]
DIRECT = {**ENVIRONMENT, "NO_PROXY": "*"}
PATIENT: dict[str, Any] = {"open_timeout": None, "ping_timeout": None}  # with slow processes


@contextmanager
def running(verb: str, path: Path, *options: str) -> Generator[subprocess.Popen[bytes]]:
    command, pipe = [*COMMAND, verb, str(path), *options], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=DIRECT) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("NO_PROXY", "*")


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [bytes(it.data) for it in tailer]


def first(path: Path) -> bytes:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return bytes(next(tailer.follow()).data)


def said(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr
    return process.stderr.readline().decode()


def url_of(server: Server) -> str:
    return f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/feed"


def publish(
    path: Path,
    handler: Callable[[ServerConnection], Awaitable[None]],
    *options: str,
    max_size: int | None = None,
) -> tuple[Ran, str]:
    """Publish to a server; what the verb did, and the server's URL."""

    async def scenario() -> tuple[Ran, str]:
        async with serve(
            handler,
            "127.0.0.1",
            0,
            max_size=max_size,
            close_timeout=None,
            **PATIENT,
        ) as server:
            url = url_of(server)
            return await asyncio.to_thread(run, "publish", path, "--websocket", url, *options), url

    return asyncio.run(scenario())


def test_a_queue_that_is_published_and_recorded_has_the_same_messages(
    path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_many(MESSAGES)
    copy = path.parent / "copy"

    async def scenario() -> Ran:
        with quire.open(copy) as queue, queue.appender() as writer:
            async with WebSocketRecorder(writer) as recorder:
                address = show_address(recorder.address)
                return await asyncio.to_thread(run, "publish", path, "--websocket", address)

    ran = asyncio.run(scenario())
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"quire: published=5 skipped=0 last={appender.last_index_appended:#x}\n"
    assert payloads(copy) == MESSAGES  # the recorder confirmed that it has read them


@pytest.mark.check
def test_messages_are_sent_as_text_on_request(path: Path, appender: quire.JournalAppender) -> None:
    sent = [b"one", b"\xff", "é".encode()]
    bad = [appender.write_bytes(it) for it in sent][1]
    heard = list[str | bytes]()

    async def hear(connection: ServerConnection) -> None:
        heard.extend([it async for it in connection])

    ran, _ = publish(path, hear, "--text", "--on-error", "skip")
    assert ran.code == 1
    assert f"index={bad:#x} not UTF-8 at byte 0 (omit --text" in ran.err
    assert heard == ["one", "é"]
    heard.clear()
    ran, _ = publish(path, hear)
    assert ran.code == 0
    assert heard == sent


@pytest.mark.check
def test_a_server_that_reads_nothing_until_it_has_spoken_is_no_obstacle(
    path: Path, appender: quire.JournalAppender
) -> None:
    payload, count = b"x" * 10_000, 2_000  # more than the buffers of the system take
    appender.write_many([payload] * count)
    heard = 0

    async def talk(connection: ServerConnection) -> None:
        nonlocal heard
        for _ in range(count):
            await connection.send(payload)
        async for _ in connection:
            heard += 1

    ran, _ = publish(path, talk)
    assert (ran.code, heard) == (0, count), ran.err


def test_a_server_that_refuses_a_message_is_an_error(
    path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"one", b"x" * 101])

    async def hear(connection: ServerConnection) -> None:
        await connection.wait_closed()

    ran, url = publish(path, hear, max_size=100)
    assert ran.code == 1
    assert f"url={url} " in ran.err
    assert "1009" in ran.err


def test_a_server_that_leaves_is_an_error(path: Path, appender: quire.JournalAppender) -> None:
    appender.write_many([b"x" * 10_000] * 2_000)

    async def leave(connection: ServerConnection) -> None:
        await connection.recv()
        connection.transport.abort()

    ran, url = publish(path, leave)
    assert ran.code == 1
    assert f"url={url} " in ran.err


def test_a_server_that_reads_nothing_holds_it_back(
    path: Path, appender: quire.JournalAppender
) -> None:
    payload, count = b"x" * 10_000, 2_000
    appender.write_many([payload] * count)

    async def scenario() -> None:
        connected = asyncio.Event()

        async def hear(connection: ServerConnection) -> None:
            await connection.recv()
            connected.set()
            await connection.wait_closed()

        async with serve(hear, "127.0.0.1", 0, max_queue=1, close_timeout=0.1, **PATIENT) as server:
            with running("publish", path, "--websocket", url_of(server)) as process:
                await connected.wait()
                process.send_signal(signal.SIGINT)
                errors = await asyncio.to_thread(lambda: process.communicate()[1])
                assert process.returncode == 130
                assert f"published={count} " not in errors.decode()

    asyncio.run(scenario())


def test_clients_of_a_port_are_recorded_until_sigterm(path: Path) -> None:
    source = path.parent / "source"
    with quire.open(source) as queue, queue.appender() as appender:
        appender.write_many(MESSAGES)
    with running("record", path, "--create", "--websocket", "0") as process:
        where = said(process)
        assert where.startswith("quire: listening: websocket=127.0.0.1:")
        url = f"ws://{where.strip().rpartition('=')[2]}/"
        assert run("publish", source, "--websocket", url).code == 0
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"quire: received=5 written=5 refused=0\n")
    assert payloads(path) == MESSAGES


def test_a_server_is_recorded_until_it_ends(path: Path) -> None:
    async def send(connection: ServerConnection) -> None:
        await connection.send("one")
        await connection.send(b"")

    async def scenario() -> Ran:
        async with serve(send, "127.0.0.1", 0, close_timeout=None, **PATIENT) as server:
            url = f"{url_of(server)}?token=secret"
            return await asyncio.to_thread(run, "record", path, "--create", "--websocket", url)

    ran = asyncio.run(scenario())
    connected, counts = ran.err.splitlines()
    assert ran.code == 0
    assert connected.startswith("quire: connected: websocket=ws://127.0.0.1:")
    assert "secret" not in connected
    assert counts == "quire: received=2 written=1 refused=1"
    assert payloads(path) == [b"one"]


def test_a_server_is_recorded_until_sigint(path: Path) -> None:
    async def send(connection: ServerConnection) -> None:
        await connection.send("one")
        await connection.wait_closed()

    async def scenario() -> None:
        async with serve(send, "127.0.0.1", 0, **PATIENT) as server:
            with running("record", path, "--create", "--websocket", url_of(server)) as process:
                await asyncio.to_thread(said, process)
                assert await asyncio.to_thread(first, path) == b"one"
                process.send_signal(signal.SIGINT)
                _, errors = await asyncio.to_thread(process.communicate)
            assert process.returncode == 130
            assert errors == b"quire: received=1 written=1 refused=0\n"

    asyncio.run(scenario())
    assert payloads(path) == [b"one"]


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize(
    ("verb", "options", "reason"),
    [
        ("record", ["--websocket", "http://host/"], "is not the URL of a WebSocket"),
        ("record", ["--websocket", "ws://me:secret@host:0/"], "'host:0/' is not the URL"),
        ("record", ["--websocket", "host"], "'host' is not HOST:PORT"),
        (
            "record",
            ["--websocket", "ws://host", "--max-clients", "3"],
            "--max-clients does not go with --websocket URL",
        ),
        ("record", ["--tcp", "0", "--origin", "http://host"], "--origin does not go with --tcp"),
        ("publish", ["--websocket", "9", "--framing", "length"], "--framing does not go with"),
        ("publish", ["--stdout", "--text"], "--text goes with --websocket"),
    ],
)
def test_wrong_use_is_refused(
    cli: Cli, path: Path, verb: str, options: list[str], reason: str
) -> None:
    ran = cli(verb, path, *options)
    assert (ran.code, reason in ran.err) == (2, True), ran.err
    assert "secret" not in ran.err


@pytest.mark.parametrize("verb", ["record", "publish"])
def test_websocket_without_its_extra_names_it(path: Path, verb: str) -> None:
    quire.open(path).close()
    program = (
        "import sys; sys.modules['websockets'] = None; from quire.cli import main;"
        f" sys.exit(main([{verb!r}, {str(path)!r}, '--websocket', '0']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    expected = b"quire: WebSocket needs websockets: pip install 'quire[record]'\n"
    assert (done.returncode, done.stderr) == (1, expected)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ws://host", "ws://host"),
        ("wss://me:secret@host:9000/a/b?token=secret", "wss://host:9000/a/b"),
        ("ws://[::1]:9000/", "ws://[::1]:9000/"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert show_url(parse_url(url)) == shown
