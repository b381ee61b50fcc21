"""``quire publish``: by real sockets, with signals, and back into a queue."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run, started
from event_loops import until
from queues import START_MS
from quire.recording import TcpRecorder, UdpRecorder
from quire.recording.addresses import show_address
from quire.recording.publishing import Rate, messages
from quire.recording.tcp import FramingName
from quire.replaying.pacing import Replay

ANY_BYTES = [b"one", bytes(range(256)), b"\r\n", b"x" * 60_000]
LINES = [b"one", b" two ", b"\0\xff", b"x" * 60_000]


def leave(server: socket.socket) -> None:
    connection, _ = server.accept()
    connection.close()


@pytest.mark.parametrize(("framing", "sent"), [("length", ANY_BYTES), ("lines", LINES)])
def test_a_queue_that_is_published_and_recorded_has_the_same_messages(
    path: Path, appender: quire.JournalAppender, framing: FramingName, sent: list[bytes]
) -> None:
    appender.write_many(sent)
    copy = path.parent / "copy"

    async def scenario() -> None:
        with quire.open(copy) as queue, queue.appender() as writer:
            async with TcpRecorder(writer, framing=framing) as recorder:
                options = "--tcp", show_address(recorder.address), "--framing", framing
                ran = await asyncio.to_thread(run, "publish", path, *options)
                await until(lambda: recorder.counts.written >= len(sent))
            last = appender.last_index_appended
            assert (ran.code, ran.out) == (0, "")
            assert ran.err == f"quire: published=4 skipped=0 last={last:#x}\n"

    asyncio.run(scenario())
    with quire.open(copy, read_only=True) as queue:
        assert [bytes(it.data) for it in queue.tailer()] == sent


def test_datagrams_are_published_and_recorded(path: Path, appender: quire.JournalAppender) -> None:
    sent = [b"one", b"\r\n\0", b"x" * 1400]
    appender.write_many(sent)
    copy = path.parent / "copy"

    async def scenario() -> None:
        with quire.open(copy) as other, other.appender() as writer:
            async with UdpRecorder(writer) as recorder:
                address = show_address(recorder.address)
                ran = await asyncio.to_thread(run, "publish", path, "--udp", address)
                assert ran.code == 0
                await until(lambda: recorder.counts.written >= len(sent))

    asyncio.run(scenario())
    with quire.open(copy, read_only=True) as other:
        assert [bytes(it.data) for it in other.tailer()] == sent


def test_a_range_goes_to_stdout(cli: Cli, path: Path, appender: quire.JournalAppender) -> None:
    indexes = [appender.write_bytes(it) for it in (b"one", b"two", b"three")]
    ran = cli("publish", path, "--stdout", "--from", hex(indexes[1]))
    assert (ran.code, ran.raw) == (0, b"two\nthree\n")
    assert ran.err == f"quire: published=2 skipped=0 last={indexes[2]:#x}\n"
    ran = cli("publish", path, "--stdout", "--to", hex(indexes[1]), "--framing", "length")
    assert (ran.code, ran.raw) == (0, b"\0\0\0\3one")


@pytest.mark.parametrize(
    ("bad", "output"),
    [(b"two\nlines", "--stdout"), (b"two\r", "--stdout"), (b"x" * 65_508, "--udp")],
)
def test_a_message_that_cannot_be_sent_is_named_or_skipped(
    cli: Cli, path: Path, appender: quire.JournalAppender, bad: bytes, output: str
) -> None:
    options = [output] if output == "--stdout" else [output, "9"]
    reason = (
        "it contains a line end"
        if output == "--stdout"
        else "too long for a datagram: length=65508 limit=65507"
    )
    first, refused, last = [appender.write_bytes(it) for it in (b"one", bad, b"three")]
    ran = cli("publish", path, *options)
    assert ran.code == 1
    assert f"published=1 skipped=0 last={first:#x}" in ran.err
    assert f"cannot publish a message: index={refused:#x} {reason}" in ran.err

    ran = cli("publish", path, *options, "--on-error", "skip")
    assert ran.code == 1
    assert f"published=2 skipped=1 last={last:#x}" in ran.err
    assert ran.raw in {b"", b"one\nthree\n"}


def test_new_messages_are_followed_until_sigterm(
    path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"one")
    with started("publish", path, "--stdout", "--follow") as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"one\n"
        last = appender.write_bytes(b"two")
        assert process.stdout.readline() == b"two\n"
        process.send_signal(signal.SIGTERM)
        errors = process.stderr.read().decode()
        # The signal may come between the line and the count of it.
        assert process.wait() == 0
        assert errors in {
            f"quire: published={n} skipped=0 last={last - 2 + n:#x}\n" for n in (1, 2)
        }


def test_an_empty_queue_is_followed(path: Path, queue: quire.JournalQueue) -> None:
    with started("publish", path, "--stdout", "--follow") as process, queue.appender() as appender:
        appender.write_bytes(b"one")
        assert process.stdout
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130


@pytest.mark.parametrize("before", [[], [10, 20]])
def test_following_from_a_time_waits_for_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender, before: list[int]
) -> None:
    for at in before:
        appender.write_map({"at": START_MS + at})
    start = datetime.fromtimestamp((START_MS + 50) / 1000, UTC)
    plan = Replay(queue, start, time_field="at")
    times = iter([40, 49, 50, 60])
    written: list[int] = []

    def append() -> None:
        written.append(appender.write_map({"at": START_MS + next(times)}))

    found = [it.index for it in islice(messages(plan, follow=True, waits=append), 2)]

    assert found == written[2:]


def test_a_receiver_that_takes_nothing_holds_it_back(
    path: Path, appender: quire.JournalAppender
) -> None:
    payload, count = b"x" * 10_000, 2_000
    appender.write_many([payload] * count)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with started("publish", path, "--tcp", port) as process:
            connection, _ = server.accept()
            with connection:
                found = connection.recv(1)  # and then nothing
                process.send_signal(signal.SIGINT)
                assert process.stderr
                errors = process.stderr.read().decode()
                assert process.wait() == 130
                while chunk := connection.recv(1 << 20):
                    found += chunk
    assert 0 < len(found) < count * (len(payload) + 1)
    assert "quire: published=" in errors


def test_a_receiver_that_goes_away_is_an_error(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"x" * 10_000] * 2_000)
    with socket.create_server(("127.0.0.1", 0)) as server:
        leaving = threading.Thread(target=leave, args=(server,))
        leaving.start()
        port = server.getsockname()[1]
        ran = cli("publish", path, "--tcp", port)
        leaving.join()
    assert ran.code == 1
    assert f"cannot send: address=127.0.0.1:{port} reason=" in ran.err
    assert "published=" in ran.err


def test_no_receiver_is_an_error(cli: Cli, path: Path, appender: quire.JournalAppender) -> None:
    appender.write_bytes(b"one")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ran = cli("publish", path, "--tcp", port)
    assert ran.code == 1
    assert f"cannot connect: address=127.0.0.1:{port} reason=" in ran.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "give exactly one of --udp, --tcp, --websocket and --stdout"),
        (["--stdout", "--udp", "9"], "give exactly one of --udp, --tcp, --websocket and --stdout"),
        (["--udp", "9", "--framing", "length"], "--framing does not go with --udp"),
        (["--stdout", "--pace", "fast"], "'fast' is not a pace"),
        (["--stdout", "--pace", "0"], "'0' is not a pace"),
        (["--stdout", "--pace", "-1x"], "'-1x' is not a pace"),
        (["--stdout", "--follow", "--to", "0x10"], "--follow never ends"),
        (["--stdout", "--pace", "original"], "cannot derive the pace"),
    ],
)
def test_wrong_use_is_refused(
    cli: Cli, path: Path, appender: quire.JournalAppender, options: list[str], reason: str
) -> None:
    appender.write_bytes(b"one")
    ran = cli("publish", path, *options)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err


def test_a_rate_is_kept_and_makes_no_burst_after_a_pause() -> None:
    now_s, slept = 100.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds
        slept.append(seconds)

    rate = Rate(4, lambda: now_s, sleep)
    for _ in range(3):
        rate.wait()
    assert slept == [0.25, 0.25]
    now_s += 60
    for _ in range(3):
        rate.wait()
    assert slept == [0.25] * 4

    slow = Rate(1 / (36 * 3600), lambda: now_s, sleep)
    slept.clear()
    for _ in range(2):
        slow.wait()
    assert slept == [24 * 3600, 12 * 3600]
