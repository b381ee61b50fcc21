"""Rings that grow: `on_full="grow"`, beside handles that block or raise."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from event_loops import held
from queues import payloads
from ring_left import SUM

LEAST = 2**16
PATIENCE_S = 600.0
RING = "async.ring"
KIB = b"x" * 1016


def opened(path: Path, on_full: Any = "grow", **options: Any) -> quire.JournalQueue:  # noqa: ANN401
    ring = quire.RingOptions(capacity_bytes=LEAST, on_full=on_full)
    given: dict[str, Any] = {"timeout_s": PATIENCE_S} | options
    return quire.open(path, buffer_mode="async", ring=ring, **given)


def ring_of(queue: quire.JournalQueue) -> quire.Ring:
    assert queue.ring is not None
    return queue.ring


def numbered(numbers: range) -> list[bytes]:
    return [struct.pack("<Q", number) + KIB for number in numbers]


@contextmanager
def full_chain(path: Path, count: int = 200) -> Generator[list[bytes]]:
    """Leave messages in rings that a process began which is killed: nothing is drained, as the
    write lock is held, which ends with this."""
    written = numbered(range(count))
    program = (
        "import os, sys, quire\n"
        f"ring = quire.RingOptions(capacity_bytes={LEAST}, on_full='grow')\n"
        "queue = quire.open(sys.argv[1], buffer_mode='async', ring=ring, timeout_s=600)\n"
        "appender = queue.appender()\n"
        f"for number in range({count}):\n"
        f"    appender.write_bytes(number.to_bytes(8, 'little') + {KIB!r})\n"
        "os.kill(os.getpid(), 9)\n"
    )
    with quire.open(path, timeout_s=PATIENCE_S) as plain, held(plain):
        subprocess.run([sys.executable, "-c", program, str(path)], check=False)
        yield written


def rings(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("async*.ring"))


def test_a_full_ring_grows_and_keeps_the_order(path: Path) -> None:
    with quire.open(path, timeout_s=PATIENCE_S) as plain, opened(path) as queue:
        written = numbered(range(1000))
        with held(plain):
            for payload in written:
                queue.appender().write_bytes(payload)
            stats = ring_of(queue)
            assert stats.pending == 1000
            assert stats.used_bytes == stats.high_water_bytes == 1000 * (1024 + SUM)
            # 64, 128, 256, 512 KiB and 1 MiB: nothing is drained that would make room.
            assert stats.capacity_bytes == 31 * LEAST
            assert stats.stalls == 4
            assert len(rings(path)) == 5
            with quire.open(path, read_only=True) as reader:
                found = reader.metrics().ring
                assert found is not None
                assert (found.pending, found.used, found.high_water, found.capacity) == (
                    1000,
                    1000 * (1024 + SUM),
                    1000 * (1024 + SUM),
                    31 * LEAST,
                )
                assert found.stalls == 4
        ring_of(queue).flush()
        assert payloads(queue) == [b"held", *written]
        assert (stats.pending, stats.used_bytes, stats.capacity_bytes) == (0, 0, 16 * LEAST)
        assert (stats.stalls, stats.high_water_bytes) == (4, 1000 * (1024 + SUM))
        assert rings(path) == [RING]


def test_handles_that_do_not_grow_follow(path: Path) -> None:
    with (
        quire.open(path, timeout_s=PATIENCE_S) as plain,
        opened(path, "block") as blocks,
        opened(path, "raise") as raises,
        opened(path) as grows,
    ):
        written: list[bytes] = []

        def write(queue: quire.JournalQueue, count: int) -> None:
            payloads = numbered(range(len(written), len(written) + count))
            queue.appender().write_many(payloads)
            written.extend(payloads)

        with held(plain):
            write(blocks, 1)
            write(grows, 200)
            for queue in (blocks, raises):
                write(queue, 3)
            with opened(path, "raise") as late:
                write(late, 3)

                def fill() -> None:
                    for _ in range(300):
                        write(late, 1)

                with pytest.raises(quire.errors.RingFullError, match=f"capacity_bytes={7 * LEAST}"):
                    fill()
                assert ring_of(blocks).pending == ring_of(late).pending == len(written)
            write(grows, 1)
            write(raises, 1)
        for queue in (blocks, raises, grows):
            ring_of(queue).flush()
        assert payloads(plain) == [b"held", *written]
        assert rings(path) == [RING]


@pytest.mark.parametrize("mode", ["async", "none"])
def test_rings_of_a_dead_process_are_drained_in_their_order(path: Path, mode: str) -> None:
    with full_chain(path) as written:
        assert len(rings(path)) == 3
    with quire.open(path, buffer_mode=mode) as queue:  # type: ignore[call-overload]
        queue.appender().write_bytes(b"later")
        if queue.ring:
            queue.ring.flush(timeout_s=PATIENCE_S)
        assert payloads(queue) == [b"held", *written, b"later"]
    assert rings(path) == [RING]


def test_a_message_that_is_longer_than_the_ring(path: Path) -> None:
    longest = bytes(range(256)) * 1024  # four times as long
    with opened(path) as queue, opened(path, "block") as other:
        queue.appender().write_bytes(b"one")
        queue.appender().write_bytes(longest)
        other.appender().write_bytes(longest)
        ring_of(queue).flush()
        assert payloads(queue) == [b"one", longest, longest]
        with pytest.raises(
            quire.errors.MessageTooLargeError, match=f"limit={2 * len(longest) - SUM}"
        ):
            other.appender().write_bytes(2 * longest)


def test_a_ring_that_cannot_grow_blocks(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A limit for files stands for a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with quire.open(path, timeout_s=PATIENCE_S) as plain, opened(path, timeout_s=0.1) as queue:
        written: list[bytes] = []
        appender = queue.appender()

        def fill() -> None:
            for payload in numbered(range(1000)):
                appender.write_bytes(payload)
                written.append(payload)

        with held(plain), caplog.at_level(logging.WARNING, "quire"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (4 * LEAST, hard))
            try:
                with pytest.raises(quire.errors.RingFullError, match=r"waited_ms=\d{3}"):
                    fill()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert "the ring cannot grow, so appends wait for space" in caplog.text
            assert ring_of(queue).capacity_bytes == 3 * LEAST
            assert len(rings(path)) == 2
            appender.write_bytes(b"grown")
        ring_of(queue).flush(timeout_s=PATIENCE_S)
        assert payloads(queue) == [b"held", *written, b"grown"]


def test_an_awaited_append_grows_the_ring(path: Path) -> None:
    with quire.open(path, timeout_s=PATIENCE_S) as plain, opened(path) as queue:
        written = numbered(range(100))

        async def main() -> None:
            with queue.appender() as appender:
                for payload in written[:80]:
                    await appender.awrite_bytes(payload)
                await appender.awrite_many(written[80:])

        with held(plain):
            asyncio.run(main())
            assert ring_of(queue).pending == 100
        ring_of(queue).flush()
        assert payloads(queue) == [b"held", *written]


def test_a_ring_whose_next_file_is_gone_is_refused(path: Path) -> None:
    with full_chain(path):
        for name in rings(path)[:-1]:
            (path / name).unlink()
    assert rings(path) == [RING]
    with pytest.raises(FileNotFoundError, match="the ring's next file"):
        quire.open(path)


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_files_that_no_ring_names_are_removed(path: Path) -> None:
    dead = dead_pid()
    with quire.open(path):
        pass
    unfinished = path / f"async-{dead << 32:x}.ring"
    own = path / f"async-{os.getpid() << 32 | 2**31:x}.ring"
    for file in (unfinished, own):
        file.write_bytes(bytes(LEAST))
    with opened(path) as queue:
        queue.appender().write_bytes(b"one")
    assert rings(path) == sorted([own.name, RING])


def test_a_symbolic_link_is_no_ring(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    link, aim = path / f"async-{dead_pid() << 32:x}.ring", path.with_name("aim")
    aim.write_bytes(bytes(LEAST))
    with quire.open(path):
        pass
    link.symlink_to(aim)
    with caplog.at_level(logging.WARNING, "quire"), opened(path) as queue:
        queue.appender().write_bytes(b"one")
    assert "unused rings stay in the directory" in caplog.text
    assert link.is_symlink()
    assert aim.read_bytes() == bytes(LEAST)


def test_the_files_have_the_mode_of_the_queue(path: Path) -> None:
    with (
        quire.open(path, timeout_s=PATIENCE_S) as plain,
        opened(path, file_mode=0o640) as queue,
        held(plain),
    ):
        queue.appender().write_many(numbered(range(100)))
        assert [(path / name).stat().st_mode & 0o777 for name in rings(path)] == [0o640] * 2
