"""Recorders beside a roll, the ring, a held write lock and a full disk."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
import small_disk
from event_loops import until
from queues import DAY_MS, START_MS, exit_code, fork, payloads
from quire.errors import LockTimeoutError
from quire.recording import TcpRecorder
from small_disk import KIB, make_room, on_small_disk

CLIENTS, LINES = 3, 50


def client(recorder: TcpRecorder) -> socket.socket:
    return socket.create_connection(recorder.address)


async def send(recorder: TcpRecorder, clock: quire.ManualClock | None = None) -> None:
    """Each client sends its lines; a day passes after every tenth, wherever the recorder is."""
    with ExitStack() as stack:
        clients = [stack.enter_context(client(recorder)) for _ in range(CLIENTS)]
        for line in range(LINES):
            for number, each in enumerate(clients):
                each.sendall(b"%d:%d\n" % (number, line))
            await asyncio.sleep(0)
            if clock is not None and line % 10 == 9:
                clock.advance(DAY_MS)
        await until(lambda: recorder.counts.written == CLIENTS * LINES)


def check_orders(found: list[bytes]) -> None:
    for number in range(CLIENTS):
        own = [it for it in found if it.startswith(b"%d:" % number)]
        assert own == [b"%d:%d" % (number, line) for line in range(LINES)]


@pytest.mark.parametrize("mode", ["none", "async"])
def test_each_client_keeps_its_order_over_rolls_and_through_the_ring(path: Path, mode: Any) -> None:  # noqa: ANN401
    clock = quire.ManualClock(START_MS)

    async def scenario(appender: quire.JournalAppender) -> None:
        async with TcpRecorder(appender) as recorder:
            await send(recorder, clock)

    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, buffer_mode=mode) as queue,
        queue.appender() as appender,
    ):
        asyncio.run(scenario(appender))
    with quire.open(path, clock=clock, buffer_mode="none") as queue:
        found = payloads(queue)
        assert len(queue.cycles) > 1 or mode == "async"  # the drainer's time is later
    assert len(found) == CLIENTS * LINES
    check_orders(found)


@contextmanager
def held_lock(path: Path) -> Generator[None]:
    """Another process has a document open, and with it the write lock."""
    (taken, took), (told, tell) = os.pipe(), os.pipe()

    def hold() -> None:
        with (
            quire.open(path) as queue,
            queue.appender() as appender,
            appender.writing_document() as document,
        ):
            document.rollback_on_close()
            os.write(took, b"x")
            os.read(told, 1)

    child = fork(hold)
    os.read(taken, 1)
    try:
        yield
    finally:
        os.write(tell, b"x")
        assert exit_code(child) == 0
        for each in (taken, took, told, tell):
            os.close(each)


def test_clients_wait_while_another_process_holds_the_lock(path: Path) -> None:
    quire.open(path).close()

    async def scenario(appender: quire.JournalAppender) -> None:
        async with TcpRecorder(appender) as recorder:
            with client(recorder) as each:
                with held_lock(path):
                    each.sendall(b"one\ntwo\n")
                    await until(lambda: recorder.counts.received == 2)
                    assert recorder.counts.written == 0
                each.sendall(b"three\n")
                await until(lambda: recorder.counts.written == 3)

    with quire.open(path, timeout_s=120.0) as queue, queue.appender() as appender:
        asyncio.run(scenario(appender))
        assert payloads(queue) == [b"one", b"two", b"three"]


def test_a_lock_that_is_never_released_ends_the_recording_with_its_error(path: Path) -> None:
    quire.open(path).close()

    async def scenario(appender: quire.JournalAppender) -> None:
        async with TcpRecorder(appender) as recorder:
            with client(recorder) as each:
                each.sendall(b"one\n")
                await recorder.run()

    with quire.open(path, timeout_s=0.1) as queue, queue.appender() as appender:
        with held_lock(path), pytest.raises(LockTimeoutError):
            asyncio.run(scenario(appender))
        assert payloads(queue) == []


def test_a_full_disk_ends_the_recording_with_its_error(tmp_path: Path) -> None:
    lines = b"".join(b"%d %s\n" % (n, b"x" * 1000) for n in range(2000))

    async def scenario(appender: quire.JournalAppender, disk: Path) -> None:
        async with TcpRecorder(appender) as recorder:
            with client(recorder) as each:
                each.sendall(b"first\n")
                await until(lambda: recorder.counts.written == 1)
                small_disk.fill(disk)
                await asyncio.gather(asyncio.to_thread(each.sendall, lines), recorder.run())

    def work(disk: Path) -> int:
        with (
            quire.open(disk / "q", block_bytes=64 * KIB) as queue,
            queue.appender() as appender,
        ):
            with pytest.raises(OSError, match=r"No space left .*make room") as caught:
                asyncio.run(scenario(appender, disk))
            assert caught.value.errno == errno.ENOSPC
            found = payloads(queue)
            assert found[0] == b"first"
            assert [int(it.split()[0]) for it in found[1:]] == [*range(len(found) - 1)]
            make_room(disk)
            appender.write_bytes(b"last")
            assert payloads(queue) == [*found, b"last"]
        return len(found)

    assert on_small_disk(tmp_path / "disk", 1024 * KIB, work) > 0
