"""What meets a copy at work: retention, files that are replaced, early files, groups, a ring."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

import pytest

import quire
import small_disk
from cli_runs import Cli
from pause_points import Party
from queues import DAY_MS, START_MS, snapshot
from quire._common.durable import SafeFolder
from quire.archive import archive
from quire.maintenance import copy_run
from quire.opening.discovery import topics_of

Content = list[tuple[int, bytes]]
DAYS = 4
PER_DAY = 300
LEFT = 12  # pages: for some of the copy


def content(path: Path) -> Content:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [(excerpt.index, excerpt.data) for excerpt in tailer]


def write(path: Path, mark: bytes) -> None:
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        for day in range(DAYS):
            appender.write_many([b"%s%d.%d" % (mark, day, it) for it in range(PER_DAY)])
            clock.advance(DAY_MS)


@pytest.fixture
def orders(path: Path) -> Path:
    write(path, b"old")
    return path


class Stopped(Exception):  # noqa: N818 - not an error
    """The copy was interrupted here."""


def stop_at(day: int) -> Callable[[str, int, int], None]:
    """Stop when the file of a day begins."""
    seen = list[str]()

    def progress(what: str, _done: int, _total: int) -> None:
        if what not in seen:
            seen.append(what)
        if len(seen) > day:
            raise Stopped

    return progress


@pytest.fixture
def stopped(orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that was interrupted in its third file, everything before it noted as durable."""
    monkeypatch.setattr(copy_run, "_BETWEEN_NOTES", 1)
    monkeypatch.setattr(copy_run, "_PIECE", 4096)
    with pytest.raises(Stopped):
        quire.copy_queue(orders, tmp_path / "copy", progress=stop_at(2))
    return tmp_path / "copy"


def is_the_source(copy: Path, source: Path) -> bool:
    assert quire.verify(copy).findings == ()
    return content(copy) == content(source)


def test_a_resumed_copy_of_a_source_that_was_replaced_holds_the_new_one(
    orders: Path, stopped: Path, tmp_path: Path
) -> None:
    orders.rename(tmp_path / "old")
    write(orders, b"new")
    assert quire.copy_queue(orders, stopped).messages == DAYS * PER_DAY
    assert is_the_source(stopped, orders)


@pytest.mark.parametrize("action", ["delete", "compress"])
def test_a_resumed_copy_lacks_what_retention_removed(
    orders: Path, stopped: Path, action: str
) -> None:
    rule = quire.Retention(max_cycles=2, action="delete" if action == "delete" else "compress")
    assert len(quire.prune(orders, max_cycles=2, action=rule.action).removed) == 2
    quire.copy_queue(orders, stopped)
    assert is_the_source(stopped, orders)
    compressed = [it.name for it in stopped.glob("*.zst")]
    assert len(compressed) == (2 if action == "compress" else 0)
    assert not [it for it in compressed if (stopped / it.removesuffix(".zst")).exists()]


COPY = """
arm()
copied = quire.copy_queue(sys.argv[1], sys.argv[2])
say([copied.messages, copied.files])
"""


@pytest.mark.parametrize("action", ["delete", "compress"])
@pytest.mark.parametrize("file", ["20240115T4.cq4", "20240116T4.cq4"])
def test_retention_at_work_leaves_no_gap_in_a_copy(
    orders: Path, tmp_path: Path, action: str, file: str
) -> None:
    """The copy stands before it opens a file; the first two cycles go."""
    copy = tmp_path / "copy"
    with Party(COPY, orders, copy, point=f"audit:open:{file}") as party:
        party.wait_until_stopped()
        if action == "delete":
            report = quire.prune(orders, max_cycles=2)
        else:
            report = quire.prune(orders, max_cycles=2, action="compress")
        assert len(report.removed) == 2
        party.go_on()
        ((messages, files),) = party.result()
    assert quire.verify(copy).findings == ()
    assert content(copy) == content(orders)
    assert (messages, files) == (len(content(orders)), len([*orders.glob("*.cq4*")]) - 1)


def test_a_file_that_is_replaced_at_work_is_copied_from_its_start(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the old file is open, a file of other messages takes its name."""
    write(tmp_path / "other", b"other")
    name = "20240116T4.cq4"
    opened = SafeFolder.open

    def open_and_replace(folder: SafeFolder, asked: str) -> BufferedReader:
        found = opened(folder, asked)
        if asked == name and (tmp_path / "other" / name).exists():
            (tmp_path / "other" / name).replace(orders / name)
        return found

    monkeypatch.setattr(SafeFolder, "open", open_and_replace)
    quire.copy_queue(orders, tmp_path / "copy")
    assert is_the_source(tmp_path / "copy", orders)
    assert content(orders)[PER_DAY][1] == b"other1.0"


def test_a_file_made_before_its_time_is_left_out(path: Path, tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS // DAY_MS * DAY_MS + DAY_MS - 1000)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        appender.write_bytes(b"x")
        with queue.pretoucher(early_acquire_next_cycle=True, preroll_time_s=2) as pretoucher:
            pretoucher.execute()
            assert len([*path.glob("*.cq4")]) == 2
            copied = quire.copy_queue(path, tmp_path / "copy")
        assert (copied.messages, copied.files) == (1, 1)
        assert is_the_source(tmp_path / "copy", path)
        with quire.open(tmp_path / "copy", clock=clock) as copy:
            index = copy.appender().write_bytes(b"y")
            assert copy.roll_cycle.to_cycle(index) == queue.current_cycle


def test_a_group_of_a_copy_begins_with_what_was_not_acknowledged(
    orders: Path, tmp_path: Path
) -> None:
    with quire.open(orders) as queue:
        with queue.group("billing").consumer() as consumer:
            consumer.ack_many(consumer.read_many(400))
        with queue.group("keyed", key=lambda _: b"k").consumer() as consumer:
            held = consumer.read()
            assert held is not None
        quire.copy_queue(orders, tmp_path / "copy")
        lag = queue.group("billing").lag
    with quire.open(tmp_path / "copy") as copy:
        assert copy.group("billing").lag == lag == DAYS * PER_DAY - 400
        with copy.group("billing").consumer() as consumer:
            assert next(iter(consumer)).data == b"old1.100"
        with copy.group("keyed", key=lambda _: b"k").consumer() as consumer:
            assert next(iter(consumer)).data == b"old0.0"
        with pytest.raises(quire.errors.GroupError):
            copy.group("keyed").consumer()


LEFT_IN_A_RING = """
queue = quire.open(sys.argv[1], buffer_mode="async")
appender = queue.appender()
other = quire.open(sys.argv[1], buffer_mode="none")
other.appender().writing_document().__enter__()
for number in range(5):
    appender.write_bytes(b"%d" % number)
os._exit(0)
"""


def test_what_waits_in_a_ring_is_named_by_what_lacks_it(
    orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Party(LEFT_IN_A_RING, orders) as party:
        assert party.result() == []
    assert quire.maintenance.ring_pending(orders)[0] == 5
    caplog.set_level(logging.WARNING, logger="quire")
    for what in ("copy", "conversion", "merge", "archive"):
        caplog.clear()
        if what == "copy":
            assert quire.copy_queue(orders, tmp_path / "copy").pending == 5
        elif what == "conversion":
            quire.convert(orders, tmp_path / "converted", into="quick-queue")
        elif what == "merge":
            quire.maintenance.merge_queues([orders], tmp_path / "merged", lambda it: it.index)
        else:
            archive(orders, tmp_path / "archive")
        assert f"the {what} lacks those" in caplog.text
        assert "messages=5" in caplog.text


def test_what_leaves_groups_out_names_them(
    orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(orders) as queue, queue.group("billing").consumer() as consumer:
        assert consumer.read() is not None
    caplog.set_level(logging.WARNING, logger="quire")
    quire.convert(orders, tmp_path / "converted", into="quick-queue")
    quire.maintenance.merge_queues([orders], tmp_path / "merged", lambda it: it.index)
    for what in ("conversion", "merge"):
        assert f"the {what} has no consumer groups" in caplog.text
    assert "billing" in caplog.text


def test_an_unfinished_copy_is_no_queue_of_its_directory(
    orders: Path, tmp_path: Path, cli: Cli
) -> None:
    with pytest.raises(Stopped):
        quire.copy_queue(orders, tmp_path / "copy", progress=stop_at(2))
    half = tmp_path / ".copy.copying"
    before = snapshot(half)
    assert [*topics_of(tmp_path)] == [orders.name]
    assert quire.verify(tmp_path).messages == DAYS * PER_DAY
    quire.repair(tmp_path, dry_run=False)
    assert snapshot(half) == before
    assert [*archive(tmp_path, tmp_path / "archive").archived] == [orders.name]
    assert ".copying" not in cli.ok("stat", tmp_path).out
    assert quire.copy_queue(orders, tmp_path / "copy").messages == DAYS * PER_DAY
    assert [*topics_of(tmp_path)] == ["copy", orders.name]
    assert not archive(tmp_path, tmp_path / "archive").lost


def test_two_copies_to_one_place_at_a_time_are_refused(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with Party(COPY, orders, copy, point="audit:open:20240116T4.cq4") as party:
        party.wait_until_stopped()
        with pytest.raises(quire.QuireError, match=r"the lock is held: lock=.*/.copy.copying"):
            quire.copy_queue(orders, copy)
        party.go_on()
        ((messages, _),) = party.result()
    assert messages == DAYS * PER_DAY
    assert is_the_source(copy, orders)


def test_a_copy_onto_a_full_disk_is_resumed(orders: Path, tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        small_disk.fill(disk, LEFT)
        with pytest.raises(OSError, match="No space left") as caught:
            quire.copy_queue(orders, disk / "copy")
        assert caught.value.filename is not None
        small_disk.make_room(disk)
        quire.copy_queue(orders, disk / "copy")
        assert is_the_source(disk / "copy", orders)
        return caught.value.errno or 0

    size = 4 * sum(it.stat().st_size for it in orders.iterdir())
    assert small_disk.on_small_disk(tmp_path / "disk", size, work) == errno.ENOSPC
