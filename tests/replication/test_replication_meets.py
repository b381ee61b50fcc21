"""Replication beside the other features of a queue: they work together, or one is refused."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import run
from ports import free_port
from queues import DAY_MS, START_MS, exit_code, fork, problems_of
from quire.errors import (
    CorruptError,
    ForkedError,
    QuireError,
    ReplicationError,
    UnsafePathError,
    UnsupportedError,
)
from quire.replication import Sink, Source
from quire.replication.aside import put_aside
from small_disk import KIB, fill, make_room, on_small_disk

WAIT_S = 60.0


def messages(path: Path | str) -> list[tuple[int, bytes]]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [(it.index, it.data) for it in tailer]


async def copied(queue: quire.JournalQueue, copy: Path, **options: Any) -> None:  # noqa: ANN401
    """Replicate what a queue has."""
    last = queue.last_index
    assert last is not None
    async with (
        Source(queue) as source,
        Sink(copy, port=source.address[1], attempts=3, reconnect_s=0.01, **options) as sink,
    ):
        await asyncio.wait_for(sink.stored(last), WAIT_S)


def go(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def clocks() -> quire.ManualClock:
    return quire.ManualClock(START_MS)


CUSTOM = quire.RollCycle(pattern="yyyy-MM-dd-HH-mm", length_ms=900_000)
LAYOUTS: dict[str, dict[str, Any]] = {
    "hourly": {"roll_cycle": "FAST_HOURLY"},
    "minutely": {"roll_cycle": "MINUTELY"},
    "huge": {"roll_cycle": "HUGE_DAILY"},
    "weekly": {"roll_cycle": "WEEKLY"},
    "of its own": {"roll_cycle": CUSTOM},
    "large blocks": {"roll_cycle": "TEST4_DAILY", "block_bytes": 1 << 22},
    "an epoch": {"roll_cycle": "TEST4_DAILY", "epoch_ms": 3_600_000},
    "a zone": {
        "roll_cycle": "FAST_DAILY",
        "time_zone": "America/New_York",
        "roll": quire.RollOptions(roll_time="17:00"),
    },
    "a zone with minutes": {
        "roll_cycle": "FAST_DAILY",
        "time_zone": "Asia/Kolkata",
        "roll": quire.RollOptions(roll_time="05:30"),
    },
    "BINARY": {"roll_cycle": "TEST4_DAILY", "wire_type": "BINARY"},
    "FIELDLESS_BINARY": {"roll_cycle": "TEST4_DAILY", "wire_type": "FIELDLESS_BINARY"},
    "a source id": {"roll_cycle": "TEST4_DAILY", "source_id": 7},
    "a time index": {"roll_cycle": "TEST4_DAILY", "time_index": True},
}


def shape(path: Path) -> list[object]:
    """Return how a queue is laid out, as its files say."""
    with quire.open(path, read_only=True) as queue:
        where = queue.roll_cycle, queue.epoch_ms, queue.roll_time_zone
        return [*where, queue.wire_type, queue.source_id, queue.block_bytes]


@pytest.mark.parametrize("options", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_is_copied(options: dict[str, Any], tmp_path: Path) -> None:
    origin, copy, clock = tmp_path / "source", tmp_path / "copy", clocks()
    given: dict[str, Any] = {"block_bytes": 1 << 16, **options}
    with quire.open(origin, format="chronicle", clock=clock, **given) as queue:
        for hour in range(0, 60, 7):
            queue.appender().write_many([b"%d" % hour, b"again"])
            clock.advance(3_600_000 * 7)
        go(copied(queue, copy))
        queue.appender().write_bytes(b"later")
        go(copied(queue, copy))
        assert shape(copy) == shape(origin)
    assert messages(copy) == messages(origin)
    assert sorted(it.name for it in copy.glob("*.cq4")) == sorted(
        it.name for it in origin.glob("*.cq4")
    )
    if options["roll_cycle"] is not CUSTOM:  # which the reference does not know
        assert problems_of(copy) == []


def test_a_source_of_plain_binary_begins_again(tmp_path: Path) -> None:
    origin, copy, port = tmp_path / "source", tmp_path / "copy", free_port()

    async def work() -> None:
        async with Sink(copy, port=port, reconnect_s=0.01) as sink:
            # The handle that creates the queue says BINARY, later ones what the file says.
            for wire_type in ("BINARY", None):
                with quire.open(origin, roll_cycle="TEST4_DAILY", wire_type=wire_type) as queue:
                    index = queue.appender().write_bytes(b"one")
                    async with Source(queue, port=port):
                        await asyncio.wait_for(sink.stored(index), WAIT_S)

    go(work())
    assert messages(copy) == messages(origin)


def test_the_copy_has_a_time_index_of_its_own(tmp_path: Path) -> None:
    origin, copy = tmp_path / "source", tmp_path / "copy"
    with quire.open(origin, roll_cycle="TEST4_DAILY", time_index=True) as queue:
        queue.appender().write_many([b"%d" % it for it in range(100)])
        go(copied(queue, copy, time_index=True))
    assert messages(copy) == messages(origin)


def test_files_have_the_mode_of_their_queue(tmp_path: Path) -> None:
    with quire.open(tmp_path / "source", roll_cycle="TEST4_DAILY", file_mode=0o660) as queue:
        queue.appender().write_bytes(b"one")
        go(copied(queue, tmp_path / "copy", file_mode=0o640))
    for folder, mode in (("source", 0o660), ("copy", 0o640)):
        files = [*(tmp_path / folder).glob("*.cq4*"), tmp_path / folder / "replicas.quire"]
        assert {stat.S_IMODE(it.stat().st_mode) for it in files} == {mode}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660, 0o666], ids=oct)
def test_a_file_of_replicas_that_was_private_gets_the_mode_of_the_table(
    mode: int, tmp_path: Path
) -> None:
    """Of the source, and of the copy; those who append and read use it, too."""
    sides = [tmp_path / "source", tmp_path / "copy"]

    def modes() -> set[int]:
        return {stat.S_IMODE((it / "replicas.quire").stat().st_mode) for it in sides}

    for begins in (False, True):
        with quire.open(sides[0], roll_cycle="TEST4_DAILY", file_mode=mode) as queue:
            queue.appender().write_bytes(b"one")
            go(copied(queue, sides[1], file_mode=mode))
        assert modes() == {mode}
        if not begins:
            for it in sides:
                (it / "replicas.quire").chmod(0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another group, and another user")
def test_a_file_of_replicas_is_for_no_more_users_than_the_table_and_its_owner_decides(
    tmp_path: Path,
) -> None:
    path = tmp_path / "source"
    file = path / "replicas.quire"

    def mode_after(user: int, group: int, before: int) -> int:
        os.chown(file, user, group)
        file.chmod(before)
        with quire.open(path) as queue:
            go(begun(queue))
        return stat.S_IMODE(file.stat().st_mode)

    with quire.open(path, file_mode=0o664) as queue:
        go(begun(queue))
    assert mode_after(0, os.getegid(), 0o600) == 0o664
    assert mode_after(0, 12345, 0o600) == 0o644  # another group's gets what everybody has
    assert mode_after(12345, os.getegid(), 0o600) == 0o600
    (path / "metadata.cq4t").chmod(0o600)
    assert mode_after(0, os.getegid(), 0o640) == 0o640


async def begun(queue: quire.JournalQueue) -> None:
    async with Source(queue):
        pass


def test_messages_longer_than_a_batch_and_than_a_read(tmp_path: Path) -> None:
    origin, copy = tmp_path / "source", tmp_path / "copy"
    with quire.open(origin, roll_cycle="TEST4_DAILY", block_bytes=1 << 26) as queue:
        for size in (1, 300_000, 5 << 20, 3):
            queue.appender().write_bytes(b"x" * size)
        go(copied(queue, copy))
    assert messages(copy) == messages(origin)


def test_a_source_with_a_ring(tmp_path: Path) -> None:
    origin, copy = tmp_path / "source", tmp_path / "copy"

    async def work(queue: quire.JournalQueue) -> None:
        async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
            with queue.appender() as appender:
                for number in range(1000):
                    appender.write_bytes(b"%d" % number)
            last = await asyncio.to_thread(lambda: wait_for_last(origin, 1000))
            await asyncio.wait_for(sink.stored(last), WAIT_S)

    with quire.open(origin, roll_cycle="TEST4_DAILY", buffer_mode="async") as queue:
        go(work(queue))
    assert messages(copy) == messages(origin)
    assert len(messages(copy)) == 1000


def wait_for_last(path: Path, count: int) -> int:
    with quire.open(path, read_only=True) as queue:
        while queue.entry_count < count:
            pass
        return queue.last_index or 0


def three_days(queue: quire.JournalQueue, clock: quire.ManualClock) -> None:
    for day in range(3):
        if day:
            clock.advance(DAY_MS)
        queue.appender().write_many([b"%d" % day, b"more"])


def test_cycles_that_the_source_deleted_are_not_skipped(
    queue: quire.JournalQueue, clock: quire.ManualClock, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    queue.appender().write_bytes(b"first")
    go(copied(queue, copy))
    clock.advance(DAY_MS)
    three_days(queue, clock)
    before = messages(copy)
    for file in sorted(Path(queue.path).glob("*.cq4"))[:2]:
        file.unlink()
    with pytest.raises(ReplicationError, match="deleted what follows"):
        go(copied(queue, copy))
    assert messages(copy) == before


def test_cycles_deleted_while_the_sink_is_connected_are_not_skipped(
    queue: quire.JournalQueue, clock: quire.ManualClock, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    three_days(queue, clock)
    for file in sorted(Path(queue.path).glob("*.cq4"))[:1]:
        file.unlink()
    queue.refresh()
    go(copied(queue, copy))  # from its start, as a new sink
    assert [data for _, data in messages(copy)] == [b"1", b"more", b"2", b"more"]


@pytest.mark.check
@pytest.mark.parametrize("how", [(), ("--compress",)], ids=["prune", "compress"])
def test_the_sink_prunes_and_compresses_for_itself(
    how: tuple[str, ...], queue: quire.JournalQueue, clock: quire.ManualClock, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    three_days(queue, clock)
    clock.advance(DAY_MS)

    async def work() -> None:
        async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
            await sink.stored(queue.last_index or 0)
            ran = await asyncio.to_thread(run, "prune", copy, "--max-cycles", "1", *how)
            assert ran.code == 0, ran.err
            index = queue.appender().write_bytes(b"after")
            await asyncio.wait_for(sink.stored(index), WAIT_S)

    go(work())
    queue.appender().write_bytes(b"after the sink has begun again")
    go(copied(queue, copy))
    assert messages(copy) == messages(queue.path)[-len(messages(copy)) :]
    assert len([*copy.glob("*.cq4")]) == 2


def test_a_fork_has_neither_source_nor_sink(queue: quire.JournalQueue, tmp_path: Path) -> None:
    index, copy = queue.appender().write_bytes(b"one"), tmp_path / "copy"

    def child() -> None:
        with pytest.raises(ForkedError):
            queue.appender().write_bytes(b"of the child")

    async def work() -> None:
        async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
            await sink.stored(index)
            assert exit_code(fork(child)) == 0
            again = queue.appender().write_bytes(b"two")
            await asyncio.wait_for(source.acknowledged(again), WAIT_S)

    go(work())
    assert [data for _, data in messages(copy)] == [b"one", b"two"]


@pytest.mark.slow
def test_a_full_disk_ends_the_sink_and_loses_nothing(tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        origin, copy = tmp_path / "source", disk / "copy"
        with quire.open(
            origin, roll_cycle="TEST8_DAILY", block_bytes=64 * KIB, clock=clocks()
        ) as queue:
            queue.appender().write_bytes(b"first")
            go(copied(queue, copy))
            fill(disk)
            queue.appender().write_many([b"%04d" % it * 500 for it in range(400)])
            with pytest.raises(OSError, match="make room") as caught:
                go(copied(queue, copy))
            assert caught.value.errno == errno.ENOSPC
            kept = messages(copy)
            assert kept == messages(origin)[: len(kept)]
            make_room(disk)
            go(copied(queue, copy))
            assert messages(copy) == messages(origin)
        return 1

    on_small_disk(tmp_path / "disk", 2048 * KIB, work)


def test_two_sinks_of_one_directory(queue: quire.JournalQueue, tmp_path: Path) -> None:
    index, copy = queue.appender().write_bytes(b"one"), tmp_path / "copy"

    async def work() -> None:
        async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
            await sink.stored(index)
            with pytest.raises(quire.errors.AppendLockedError):
                async with Sink(copy, port=source.address[1]) as second:
                    await second.run_forever()
            again = queue.appender().write_bytes(b"two")
            await asyncio.wait_for(sink.stored(again), WAIT_S)

    go(work())
    assert [data for _, data in messages(copy)] == [b"one", b"two"]


def test_a_sink_of_itself(queue: quire.JournalQueue) -> None:
    queue.appender().write_bytes(b"one")

    async def work() -> None:
        async with Source(queue) as source:
            with pytest.raises(ReplicationError, match="own queue"):
                async with Sink(queue.path, port=source.address[1]) as sink:
                    await sink.run_forever()

    go(work())
    queue.appender().write_bytes(b"still open")


def refuses(queue: quire.JournalQueue, copy: Path) -> QuireError | OSError:
    try:
        go(copied(queue, copy))
    except (QuireError, OSError) as error:
        return error
    raise AssertionError("it was not refused")


def test_a_directory_that_holds_another_queue(queue: quire.JournalQueue, tmp_path: Path) -> None:
    queue.appender().write_bytes(b"one")
    with quire.open(tmp_path / "other", roll_cycle="TEST4_DAILY") as other:
        other.appender().write_bytes(b"other")
    refuses(queue, tmp_path / "other")
    with quire.open(tmp_path / "other") as other:
        other.appender().write_bytes(b"still open")
    assert [data for _, data in messages(tmp_path / "other")] == [b"other", b"still open"]
    assert not (tmp_path / "other" / "replication.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[",
        b"null",
        b"[" * 5000,
        b"\xff",
        b'{"identity":"x","epoch":1,"role":"sink"}',
        b"x" * 70_000,
    ],
    ids=["empty", "no facts", "cut off", "null", "nested", "no text", "no identity", "long"],
)
def test_a_damaged_replication_json(
    content: bytes, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    queue.appender().write_bytes(b"one")
    go(copied(queue, copy))
    (copy / "replication.json").write_bytes(content)
    error = refuses(queue, copy)
    assert isinstance(error, CorruptError | UnsafePathError), repr(error)
    assert "replication.json" in str(error)
    assert (copy / "replication.json").read_bytes() == content


def test_a_replication_json_that_is_a_link(queue: quire.JournalQueue, tmp_path: Path) -> None:
    copy, secret = tmp_path / "copy", tmp_path / "secret"
    queue.appender().write_bytes(b"one")
    go(copied(queue, copy))
    (copy / "replication.json").rename(secret)
    before = secret.read_bytes()
    (copy / "replication.json").symlink_to(secret)
    refuses(queue, copy)
    assert secret.read_bytes() == before
    assert (copy / "replication.json").is_symlink()


def test_a_copy_directory_that_was_replaced(queue: quire.JournalQueue, tmp_path: Path) -> None:
    copy, moved = tmp_path / "copy", tmp_path / "moved"
    index = queue.appender().write_bytes(b"one")

    async def work() -> None:
        async with Source(queue) as source:
            sink = Sink(copy, port=source.address[1], attempts=3, reconnect_s=0.01)
            with pytest.raises((QuireError, OSError)):  # noqa: PT012
                async with sink:
                    await sink.stored(index)
                    copy.rename(moved)
                    copy.mkdir()
                    queue.appender().write_bytes(b"two")
                    await asyncio.wait_for(sink.run_forever(), WAIT_S)

    go(work())
    assert list(copy.iterdir()) == []
    kept = messages(moved)
    assert kept == messages(queue.path)[: len(kept)]


def index_shape(path: Path) -> bytes:
    """Return what the header of the only roll file says of its index."""
    [file] = path.glob("2*.cq4")
    return file.read_bytes().partition(b"indexCount")[2][:24]


@pytest.mark.check
def test_a_copy_may_be_on_a_file_system_of_its_own(tmp_path: Path) -> None:
    """One of the network, or a small one: the index stays as the source says."""
    shape = quire.LayoutOptions(index_count=32, index_spacing=8)
    own = quire.LayoutOptions(allow_network=True, low_space_percent=0)
    path, copy = tmp_path / "orders", tmp_path / "copy"
    with quire.open(path, roll_cycle="FAST_DAILY", layout=shape) as queue:
        queue.appender().write_many([b"one", b"two"])
        go(copied(queue, copy, layout=own))
        assert index_shape(copy) == index_shape(path)
        put_aside(copy, queue.last_index or 0, {"layout": own})
        go(copied(queue, copy, layout=own))
        for shape in (quire.LayoutOptions(index_count=8), quire.LayoutOptions(index_spacing=8)):
            with pytest.raises(UnsupportedError, match=r"not an option of a copy: index_\w+=8"):
                Sink(copy, port=1, layout=shape)
    assert messages(copy) == messages(path)
    assert problems_of(copy) == []
