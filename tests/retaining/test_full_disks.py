"""Retention onto a disk that is full, and without the permission it needs."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any, Literal

import pytest

import quire
from queues import DAY_MS, START_MS, copy_of, payloads
from small_disk import KIB, fill, is_no_space, make_room, on_small_disk

DAYS = 4


@pytest.fixture
def orders(path: Path) -> Path:
    """Four days of one message."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        for day in range(DAYS):
            appender.write_bytes(b"%d" % day * 100)
            clock.advance(DAY_MS)
    return path


def days_in(path: Path) -> list[int]:
    with quire.open(path, read_only=True) as queue:
        return [int(it[:1]) for it in payloads(queue)]


def test_a_full_disk_loses_nothing_and_the_next_run_goes_on(orders: Path, tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        fill(disk, leave=8)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
            quire.prune(orders, max_cycles=1, action="move", dest=disk / "old")
        assert caught.value.errno == errno.ENOSPC
        left = days_in(orders)
        moved = [*(disk / "old").glob("*.cq4")]
        assert len(left) + len(moved) == DAYS
        assert not [it for it in (disk / "old").iterdir() if it.name.endswith(".tmp")]
        make_room(disk)
        quire.prune(orders, max_cycles=1, action="move", dest=disk / "old")
        assert (days_in(disk / "old"), days_in(orders)) == ([0, 1, 2], [3])
        return len(left)

    assert on_small_disk(tmp_path / "disk", 1024 * KIB, work) > 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_directory_that_cannot_be_written_is_an_error(orders: Path) -> None:
    orders.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            quire.prune(orders, max_cycles=1)
        assert len(quire.prune(orders, max_cycles=1, dry_run=True).removed) == DAYS - 1
    finally:
        orders.chmod(0o700)
    assert days_in(orders) == [0, 1, 2, 3]


def test_compressing_on_a_full_disk_loses_nothing(orders: Path, tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        path = copy_of(orders, disk / "queue")
        fill(disk, leave=1)  # for the lock
        with pytest.raises(OSError, match="cannot compress") as caught:
            quire.prune(path, max_cycles=1, action="compress")
        assert is_no_space(caught.value, ".tmp")
        assert days_in(path) == [*range(DAYS)]
        assert not [it for it in path.iterdir() if it.name.endswith((".tmp", ".zst"))]
        make_room(disk)
        assert len(quire.prune(path, max_cycles=1, action="compress").removed) == DAYS - 1
        fill(disk)
        os.environ["TMPDIR"] = str(disk)  # where readers of a full disk decompress
        with pytest.raises(OSError, match="cannot decompress") as caught:
            days_in(path)
        assert is_no_space(caught.value, ".cq4.zst")
        make_room(disk)
        assert days_in(path) == [*range(DAYS)]
        return 1

    assert on_small_disk(tmp_path / "disk", 2048 * KIB, work) == 1


@pytest.mark.parametrize("action", ["delete", "move"])
def test_a_full_disk_is_freed_by_a_run_that_never_ran_before(
    orders: Path, tmp_path: Path, action: Literal["delete", "move"]
) -> None:
    """Its lock file is new, and needs no byte."""

    def work(disk: Path) -> int:
        copy_of(orders, disk / "orders")
        fill(disk, leave=0)
        dest: dict[str, Any] = {"dest": disk / "old"} if action == "move" else {}
        removed = quire.prune(disk / "orders", max_cycles=1, action=action, **dest).removed
        assert days_in(disk / "orders") == [DAYS - 1]
        return len(removed)

    assert on_small_disk(tmp_path / "disk", 2048 * KIB, work) == DAYS - 1


def test_compressed_cycles_are_read_and_found_healthy_on_a_full_disk(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(disk: Path) -> int:
        copy_of(orders, disk / "orders")
        assert len(quire.prune(disk / "orders", max_cycles=1, action="compress").removed) == 3
        fill(disk, leave=0)
        assert days_in(disk / "orders") == [*range(DAYS)]
        report = quire.verify(disk / "orders")
        assert report.findings == ()
        monkeypatch.setenv("TMPDIR", str(disk))
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            quire.verify(disk / "orders")
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            days_in(disk / "orders")
        return report.messages

    assert on_small_disk(tmp_path / "disk", 2048 * KIB, work) == DAYS


def test_the_thread_of_an_open_queue_frees_a_full_disk(orders: Path, tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        copy_of(orders, disk / "orders")
        removed = threading.Semaphore(0)
        rule = quire.Retention(max_cycles=1, on_removed=lambda _: removed.release())
        fill(disk, leave=0)
        with quire.open(disk / "orders", retention=rule):
            return sum(removed.acquire(timeout=120) for _ in range(DAYS - 1))

    assert on_small_disk(tmp_path / "disk", 2048 * KIB, work) == DAYS - 1
